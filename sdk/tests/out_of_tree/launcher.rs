//! A launcher in Rust without a crate: every rank is a process of its own. Its structs are written by hand after dtrun/abi.
//!
//! Pure functions; core calls them from one thread.
#![allow(non_camel_case_types)]
use std::mem::size_of;
use std::os::raw::{c_char, c_void};
use std::ptr;

type dtrun_status = i32;
const OK: dtrun_status = 0;
const FAILED_PRECONDITION: dtrun_status = 4;
const MAGIC: u64 = 0x3130_6e75_7274_6400;
const KIND_LAUNCHER: i32 = 2;

#[repr(C)]
pub struct dtrun_error {
    struct_size: u32,
    flags: u32,
    code: dtrun_status,
    peer: i32,
    vendor_code: i64,
    vendor_domain: [u8; 16],
    message: [u8; 512],
}

#[repr(C)]
pub struct dtrun_host {
    struct_size: u32,
    flags: u32,
    abi: [u32; 2],
    kind: i32,
    in_probe: i32,
    product: [usize; 2],
    get_service: *const c_void,
}

#[repr(C)]
struct dtrun_job_host {
    struct_size: u32,
    flags: u32,
    name: *const c_char,
    first_rank: i32,
    local_size: i32,
}

/// As far as this launcher reads it; a longer one is read in part.
#[repr(C)]
pub struct dtrun_job {
    struct_size: u32,
    flags: u32,
    name: *const c_char,
    argv: *const *const c_char,
    argc: u64,
    cwd: *const c_char,
    hosts: *const dtrun_job_host,
    host_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct dtrun_env_entry {
    struct_size: u32,
    flags: u32,
    name: *const c_char,
    value: *const c_char,
}

#[repr(C)]
pub struct dtrun_process {
    struct_size: u32,
    flags: u32,
    host_index: i32,
    rank: i32,
    local_rank: i32,
    rank_count: i32,
    argv: *const *const c_char,
    argc: u64,
    env: *const dtrun_env_entry,
    env_count: u64,
    cwd: *const c_char,
}

#[repr(C)]
pub struct dtrun_plan_sink {
    struct_size: u32,
    flags: u32,
    context: *mut c_void,
    process: unsafe extern "C" fn(*mut c_void, *const dtrun_process, *mut dtrun_error) -> dtrun_status,
}

type Plan = unsafe extern "C" fn(*mut c_void, *const dtrun_job, *const dtrun_plan_sink, *mut dtrun_error) -> dtrun_status;
type Init = unsafe extern "C" fn(*const dtrun_host, *const c_void, *mut *mut c_void, *mut dtrun_error) -> dtrun_status;

#[repr(C)]
struct dtrun_launcher {
    struct_size: u32,
    flags: u32,
    plan: Plan,
}

#[repr(C)]
pub struct dtrun_plugin {
    struct_size: u32,
    flags: u32,
    magic: u64,
    abi_major: u32,
    abi_minor_built: u32,
    abi_minor_required: u32,
    kind: i32,
    texts: [*const u8; 5], // name, version, vendor, license, summary
    options: *const c_void,
    option_count: u64,
    init: Init,
    shutdown: unsafe extern "C" fn(*mut c_void),
    backend: *const c_void,
    launcher: *const dtrun_launcher,
    get_extension: *const c_void,
}
unsafe impl Sync for dtrun_plugin {}

/// Fills what the caller's struct holds, and nothing behind that. `text` is shorter than the smallest buffer.
unsafe fn fail(err: *mut dtrun_error, code: dtrun_status, text: &str) -> dtrun_status {
    if err.is_null() {
        return code;
    }
    let message = ptr::addr_of_mut!((*err).message) as *mut u8;
    if (*err).struct_size as usize > message as usize - err as usize + text.len() {
        (*err).code = code;
        (*err).peer = -1;
        ptr::copy_nonoverlapping(text.as_ptr(), message, text.len());
        *message.add(text.len()) = 0;
    }
    code
}

unsafe extern "C" fn init(_: *const dtrun_host, _: *const c_void, out: *mut *mut c_void, _: *mut dtrun_error) -> dtrun_status {
    *out = ptr::addr_of!(PLUGIN) as *mut c_void; // no state: any address will do
    OK
}

unsafe extern "C" fn shutdown(_: *mut c_void) {}

unsafe extern "C" fn plan(_: *mut c_void, job: *const dtrun_job, sink: *const dtrun_plan_sink, err: *mut dtrun_error) -> dtrun_status {
    let stride = if (*job).host_count > 0 { (*(*job).hosts).struct_size as usize } else { 0 };
    for index in 0..(*job).host_count as usize {
        let host = &*((*job).hosts as *const u8).add(index * stride).cast::<dtrun_job_host>();
        for local in 0..host.local_size {
            let rank = format!("{}\0", host.first_rank + local);
            let env = dtrun_env_entry {
                struct_size: size_of::<dtrun_env_entry>() as u32,
                flags: 0,
                name: "RANK\0".as_ptr().cast(),
                value: rank.as_ptr().cast(),
            };
            let process = dtrun_process {
                struct_size: size_of::<dtrun_process>() as u32,
                flags: 0,
                host_index: index as i32,
                rank: host.first_rank + local,
                local_rank: local,
                rank_count: 1,
                argv: ptr::null(),
                argc: 0,
                env: &env,
                env_count: 1,
                cwd: ptr::null(),
            };
            let status = ((*sink).process)((*sink).context, &process, err);
            if status != OK {
                return status;
            }
        }
    }
    OK
}

static LAUNCHER: dtrun_launcher = dtrun_launcher { struct_size: size_of::<dtrun_launcher>() as u32, flags: 0, plan };
static PLUGIN: dtrun_plugin = dtrun_plugin {
    struct_size: size_of::<dtrun_plugin>() as u32,
    flags: 0,
    magic: MAGIC,
    abi_major: 0,
    abi_minor_built: 9,
    abi_minor_required: 0,
    kind: KIND_LAUNCHER,
    texts: [
        "in-rust\0".as_ptr(),
        "1.0\0".as_ptr(),
        "dtrun tests\0".as_ptr(),
        "MIT\0".as_ptr(),
        "every rank is a process of its own\0".as_ptr(),
    ],
    options: ptr::null(),
    option_count: 0,
    init,
    shutdown,
    backend: ptr::null(),
    launcher: &LAUNCHER,
    get_extension: ptr::null(),
};

/// # Safety
/// Called by dtrun, as dtrun/abi/plugin.h says.
#[no_mangle]
pub unsafe extern "C" fn dtrun_plugin_entry_v0(
    host: *const dtrun_host,
    out: *mut *const dtrun_plugin,
    err: *mut dtrun_error,
) -> dtrun_status {
    if ((*host).struct_size as usize) < size_of::<dtrun_host>() {
        return fail(err, FAILED_PRECONDITION, "the host's table is too short; upgrade dtrun");
    }
    *out = &PLUGIN;
    OK
}
