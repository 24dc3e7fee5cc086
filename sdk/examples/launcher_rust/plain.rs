//! A launcher in Rust that plans: every rank is a process of its own, with the job's command and these variables. No
//! crates; pure functions, which dtrun calls from one thread.

#[allow(non_camel_case_types, dead_code)]
mod abi {
    include!(concat!(env!("DTRUN_INCLUDE"), "/dtrun/dtrun_abi.rs"));
}

use abi::*;
use std::ffi::{CStr, CString};
use std::ptr::null;
use std::sync::Once;

fn c(text: &'static str) -> *const std::os::raw::c_char {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap().as_ptr()
}

/// Flags of the upper half change what is asked: a plugin that does not know one does not do what it is asked for.
fn has_unknown(flags: u32) -> bool {
    flags & DTRUN_FLAGS_MUST_UNDERSTAND != 0
}

unsafe fn refuse(err: *mut dtrun_error) -> dtrun_status {
    dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "the call has a flag that this plugin does not know")
}

unsafe extern "C" fn plan(
    _: *mut dtrun_instance, job: *const dtrun_job, sink: *const dtrun_plan_sink, err: *mut dtrun_error,
) -> dtrun_status {
    if has_unknown((*job).flags | (*sink).flags) {
        return refuse(err);
    }
    for index in 0..(*job).host_count as usize {
        let stride = (*(*job).hosts).struct_size as usize; // of a newer dtrun it is longer
        let host = ((*job).hosts as *const u8).add(index * stride) as *const dtrun_job_host;
        if has_unknown((*host).flags) {
            return refuse(err);
        }
        for local in 0..(*host).local_size {
            let rank = (*host).first_rank + local;
            let numbers = [rank, (*job).world_size, local, (*host).local_size, index as i32];
            let values: Vec<CString> = numbers.iter().map(|n| CString::new(n.to_string()).unwrap()).collect();
            let mut env = Vec::new();
            let names = ["RANK\0", "WORLD_SIZE\0", "LOCAL_RANK\0", "LOCAL_WORLD_SIZE\0", "NODE_RANK\0"];
            for (name, value) in names.iter().zip(&values) {
                env.push(dtrun_env_entry { name: c(name), value: value.as_ptr(), ..Default::default() });
            }
            env.push(dtrun_env_entry { name: c("MASTER_ADDR\0"), value: (*job).master_addr, ..Default::default() });
            env.push(dtrun_env_entry { name: c("MASTER_PORT\0"), value: (*job).master_port, ..Default::default() });
            let process = dtrun_process {
                host_index: index as i32,
                rank,
                local_rank: local,
                rank_count: 1,
                env: env.as_ptr(),
                env_count: env.len() as u64,
                ..Default::default() // no argv and no cwd: the job's
            };
            let status = ((*sink).process.unwrap())((*sink).context, &process, err);
            if status != DTRUN_OK {
                return status;
            }
        }
    }
    DTRUN_OK
}

unsafe extern "C" fn init(
    params: *const dtrun_init_params, out: *mut *mut dtrun_instance, err: *mut dtrun_error,
) -> dtrun_status {
    if has_unknown((*params).flags) {
        return refuse(err);
    }
    *out = c("no state\0") as *mut dtrun_instance; // any address will do
    DTRUN_OK
}

unsafe extern "C" fn shutdown(_: *mut dtrun_instance) {}

/// # Safety
/// Called by dtrun, with its host table.
#[no_mangle]
pub unsafe extern "C" fn dtrun_plugin_entry_v1(
    _: *const dtrun_host, out: *mut *const dtrun_plugin, _: *mut dtrun_error,
) -> dtrun_status {
    static ONCE: Once = Once::new();
    static mut TABLE: *const dtrun_plugin = null();
    ONCE.call_once(|| {
        let launcher = Box::leak(Box::new(dtrun_launcher { plan: Some(plan), ..Default::default() }));
        TABLE = Box::leak(Box::new(dtrun_plugin {
            magic: DTRUN_PLUGIN_MAGIC,
            abi_major: DTRUN_ABI_MAJOR,
            abi_minor_built: DTRUN_ABI_MINOR,
            abi_minor_required: DTRUN_ABI_REQUIRED,
            kind: DTRUN_KIND_LAUNCHER,
            name: c("plain_rust\0"),
            version: c("1.0\0"),
            vendor: c("dtrun examples\0"),
            license: c("Apache-2.0\0"),
            summary: c("every rank is a process of its own\0"),
            init: Some(init),
            shutdown: Some(shutdown),
            launcher,
            ..Default::default()
        }));
    });
    *out = TABLE;
    DTRUN_OK
}
