// dtrun_abi.rs - the plugin ABI of dtrun for Rust, generated from dtrun/abi/*.h by sdk/rust_ffi.py; the headers say
// what everything means, who owns it and which threads may call it.
//
//   #[allow(non_camel_case_types, dead_code)]
//   mod abi {
//       include!(concat!(env!("DTRUN_INCLUDE"), "/dtrun/dtrun_abi.rs"));
//   }
//
// Needs Rust 1.77 and edition 2021. `T::default()` is what DTRUN_INIT makes: zero, with struct_size.

use std::ffi::{c_char, c_void};

pub type dtrun_status = i32;
pub const DTRUN_OK: i32 = 0;
pub const DTRUN_PENDING: i32 = 1;
pub const DTRUN_INVALID_ARGUMENT: i32 = 2;
pub const DTRUN_UNSUPPORTED: i32 = 3;
pub const DTRUN_FAILED_PRECONDITION: i32 = 4;
pub const DTRUN_NOT_FOUND: i32 = 5;
pub const DTRUN_OUT_OF_MEMORY: i32 = 6;
pub const DTRUN_TIMEOUT: i32 = 7;
pub const DTRUN_ABORTED: i32 = 8;
pub const DTRUN_REMOTE_FAILURE: i32 = 9;
pub const DTRUN_SYSTEM: i32 = 10;
pub const DTRUN_VENDOR: i32 = 11;
pub const DTRUN_BUSY: i32 = 12;
pub const DTRUN_INTERNAL: i32 = 13;
pub const DTRUN_MISMATCH: i32 = 14;
pub const DTRUN_ERROR_MESSAGE_BYTES: i32 = 512;
pub const DTRUN_ERROR_DOMAIN_BYTES: i32 = 16;
pub const DTRUN_ERROR_RETRYABLE: i32 = 1;
pub const DTRUN_FLOAT16: i32 = 1;
pub const DTRUN_BFLOAT16: i32 = 2;
pub const DTRUN_FLOAT32: i32 = 3;
pub const DTRUN_FLOAT64: i32 = 4;
pub const DTRUN_INT32: i32 = 5;
pub const DTRUN_INT64: i32 = 6;
pub const DTRUN_UINT8: i32 = 7;
pub const DTRUN_INT8: i32 = 8;
pub const DTRUN_INT16: i32 = 9;
pub const DTRUN_UINT16: i32 = 10;
pub const DTRUN_UINT32: i32 = 11;
pub const DTRUN_UINT64: i32 = 12;
pub const DTRUN_BOOL: i32 = 13;
pub const DTRUN_COMPLEX64: i32 = 14;
pub const DTRUN_COMPLEX128: i32 = 15;
pub const DTRUN_SUM: i32 = 1;
pub const DTRUN_PROD: i32 = 2;
pub const DTRUN_MIN: i32 = 3;
pub const DTRUN_MAX: i32 = 4;
pub const DTRUN_AVG: i32 = 5;
pub const DTRUN_PREMUL_SUM: i32 = 6;
pub const DTRUN_BAND: i32 = 7;
pub const DTRUN_BOR: i32 = 8;
pub const DTRUN_BXOR: i32 = 9;
pub const DTRUN_LAND: i32 = 10;
pub const DTRUN_LOR: i32 = 11;
pub const DTRUN_ALLREDUCE: i32 = 1;
pub const DTRUN_BROADCAST: i32 = 2;
pub const DTRUN_ALLGATHER: i32 = 3;
pub const DTRUN_REDUCE_SCATTER: i32 = 4;
pub const DTRUN_BARRIER: i32 = 5;
pub const DTRUN_SEND: i32 = 6;
pub const DTRUN_RECV: i32 = 7;
pub const DTRUN_REDUCE: i32 = 8;
pub const DTRUN_ALLTOALL: i32 = 9;
pub const DTRUN_GATHER: i32 = 10;
pub const DTRUN_SCATTER: i32 = 11;
pub const DTRUN_ALLGATHERV: i32 = 12;
pub const DTRUN_REDUCE_SCATTERV: i32 = 13;
pub const DTRUN_ALLTOALLV: i32 = 14;
pub const DTRUN_GATHERV: i32 = 15;
pub const DTRUN_SCATTERV: i32 = 16;
pub const DTRUN_ANY_SOURCE: i32 = -1;
pub const DTRUN_DEVICE_HOST: i32 = 0;
pub const DTRUN_DEVICE_CUDA: i32 = 1;
pub const DTRUN_DEVICE_ROCM: i32 = 2;
pub const DTRUN_DEVICE_LEVEL_ZERO: i32 = 3;
pub const DTRUN_DEVICE_OTHER: i32 = 32;
pub const DTRUN_OP_BLOCKING: i32 = 1;
pub const DTRUN_OP_DETACHED: i32 = 1 << 16;
pub const DTRUN_TYPE_BOOL: i32 = 1;
pub const DTRUN_TYPE_INT: i32 = 2;
pub const DTRUN_TYPE_UINT: i32 = 3;
pub const DTRUN_TYPE_FLOAT: i32 = 4;
pub const DTRUN_TYPE_STRING: i32 = 5;
pub const DTRUN_TYPE_ENUM: i32 = 6;
pub const DTRUN_TYPE_BYTES: i32 = 7;
pub const DTRUN_TYPE_DURATION: i32 = 8;
pub const DTRUN_TYPE_PATH: i32 = 9;
pub const DTRUN_TYPE_LIST: i32 = 10;
pub const DTRUN_SCOPE_PROCESS: i32 = 1;
pub const DTRUN_SCOPE_HOST: i32 = 2;
pub const DTRUN_SCOPE_JOB: i32 = 3;
pub const DTRUN_OPTION_REQUIRED: i32 = 1;
pub const DTRUN_OPTION_EXPERIMENTAL: i32 = 2;
pub const DTRUN_OPTION_SECRET: i32 = 4;
pub const DTRUN_OPTION_MUST_EXIST: i32 = 8;
pub const DTRUN_ORIGIN_DEFAULT: i32 = 0;
pub const DTRUN_ORIGIN_FILE: i32 = 1;
pub const DTRUN_ORIGIN_ENVIRONMENT: i32 = 2;
pub const DTRUN_ORIGIN_COMMAND_LINE: i32 = 3;
pub const DTRUN_KIND_BACKEND: i32 = 1;
pub const DTRUN_KIND_LAUNCHER: i32 = 2;
pub const DTRUN_KIND_DEVICE: i32 = 3;
pub const DTRUN_LOG_DEBUG: i32 = 1;
pub const DTRUN_LOG_INFO: i32 = 2;
pub const DTRUN_LOG_WARN: i32 = 3;
pub const DTRUN_LOG_ERROR: i32 = 4;
pub const DTRUN_KV_MAX_KEY_BYTES: i32 = 1024;
pub const DTRUN_KV_MAX_VALUE_BYTES: i32 = 16 << 20;
pub const DTRUN_CAP_ABORT: i32 = 1;
pub const DTRUN_CAP_THREAD_MULTIPLE: i32 = 2;
pub const DTRUN_CAP_ANY_SOURCE: i32 = 4;
pub const DTRUN_CAP_LAZY_CONNECT: i32 = 16;
pub const DTRUN_CAP_DETACHED: i32 = 32;
pub const DTRUN_CAP_CAPTURE: i32 = 64;
pub const DTRUN_CAP_STREAM_ORDER: i32 = 128;
pub const DTRUN_CAP_NO_STREAM: i32 = 256;
pub const DTRUN_ENV_UNSET: i32 = 1 << 16;
pub const DTRUN_ALLOCATION_EVERYWHERE: i32 = 1 << 16;
pub const DTRUN_ALLOCATION_OWN_INDEX: i32 = 1 << 17;
pub const DTRUN_ALLOCATION_PORT_TAKEN: i32 = 1 << 18;
pub const DTRUN_ABI_MAJOR: u32 = 0;
pub const DTRUN_ABI_MINOR: u32 = 9;
pub const DTRUN_ABI_REQUIRED: u32 = 0;
pub const DTRUN_FLAGS_MUST_UNDERSTAND: u32 = 0xffff0000;
pub const DTRUN_VENDOR_FIRST: u32 = 0x40000000;
pub const DTRUN_OPTIONS_SERVICE: &std::ffi::CStr = c"dtrun.options/1";
pub const DTRUN_LOG_SERVICE: &std::ffi::CStr = c"dtrun.log/1";
pub const DTRUN_MEMORY_SERVICE: &std::ffi::CStr = c"dtrun.memory/1";
pub const DTRUN_KV_SERVICE: &std::ffi::CStr = c"dtrun.kv/1";
pub const DTRUN_CLOCK_SERVICE: &std::ffi::CStr = c"dtrun.clock/1";
pub const DTRUN_THREADS_SERVICE: &std::ffi::CStr = c"dtrun.threads/1";
pub const DTRUN_HEALTH_SERVICE: &std::ffi::CStr = c"dtrun.health/1";
pub const DTRUN_PLUGIN_MAGIC: u64 = 0x31306e7572746400;
pub const DTRUN_PLUGIN_ENTRY_SYMBOL: &std::ffi::CStr = c"dtrun_plugin_entry_v0";
pub const DTRUN_KERNELS_SERVICE: &std::ffi::CStr = c"dtrun.kernels/1";
pub const DTRUN_COLLECTIVES_SERVICE: &std::ffi::CStr = c"dtrun.collectives/1";
pub const DTRUN_CALLS_SERVICE: &std::ffi::CStr = c"dtrun.calls/1";
pub const DTRUN_MEMBERSHIP_SERVICE: &std::ffi::CStr = c"dtrun.membership/1";

#[repr(C)]
pub struct dtrun_backend_comm {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_call {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_calls {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_collectives {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_event {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_instance {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_kv {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_membership {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_message {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_options {
    private: [u8; 0],
}

#[repr(C)]
pub struct dtrun_request {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_string {
    pub data: *const c_char,
    pub size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_error {
    pub struct_size: u32,
    pub flags: u32,
    pub code: dtrun_status,
    pub peer: i32,
    pub vendor_code: i64,
    pub vendor_domain: [c_char; DTRUN_ERROR_DOMAIN_BYTES as usize],
    pub message: [c_char; DTRUN_ERROR_MESSAGE_BYTES as usize],
}
impl Default for dtrun_error {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value.peer = -1;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_op {
    pub struct_size: u32,
    pub flags: u32,
    pub kind: i32,
    pub dtype: i32,
    pub reduce: i32,
    pub root: i32,
    pub peer: i32,
    pub tag: u32,
    pub sequence: u64,
    pub count: u64,
    pub send: *const c_void,
    pub recv: *mut c_void,
    pub timeout_ns: i64,
    pub send_counts: *const u64,
    pub send_offsets: *const u64,
    pub recv_counts: *const u64,
    pub recv_offsets: *const u64,
    pub scale: f64,
    pub source: *mut i32,
}
impl Default for dtrun_op {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_option {
    pub struct_size: u32,
    pub flags: u32,
    pub key: *const c_char,
    pub r#type: i32,
    pub scope: i32,
    pub default_text: *const c_char,
    pub doc: *const c_char,
    pub long_doc: *const c_char,
    pub unit: *const c_char,
    pub min_text: *const c_char,
    pub max_text: *const c_char,
    pub choices: *const *const c_char,
    pub choice_count: u64,
    pub since: *const c_char,
    pub env_alias: *const c_char,
    pub replaced_by: *const c_char,
}
impl Default for dtrun_option {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_options_service {
    pub struct_size: u32,
    pub flags: u32,
    pub get_int: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_options, *const c_char, *mut i64, *mut dtrun_error) -> dtrun_status>,
    pub get_float: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_options, *const c_char, *mut f64, *mut dtrun_error) -> dtrun_status>,
    pub get_string: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_options, *const c_char, *mut dtrun_string, *mut dtrun_error) -> dtrun_status>,
    pub get_list: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_options, *const c_char, *mut *const dtrun_string, *mut u64, *mut dtrun_error) -> dtrun_status>,
    pub get_origin: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_options, *const c_char, *mut i32, *mut dtrun_string, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_options_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_host {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub kind: i32,
    pub in_probe: i32,
    pub product: dtrun_string,
    pub get_service: Option<unsafe extern "C" fn(*const dtrun_host, *const c_char) -> *const c_void>,
}
impl Default for dtrun_host {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_log_service {
    pub struct_size: u32,
    pub flags: u32,
    pub enabled: Option<unsafe extern "C" fn(*const dtrun_host, i32) -> i32>,
    pub write: Option<unsafe extern "C" fn(*const dtrun_host, i32, *const c_char, dtrun_string)>,
}
impl Default for dtrun_log_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_memory_service {
    pub struct_size: u32,
    pub flags: u32,
    pub allocate: Option<unsafe extern "C" fn(*const dtrun_host, u64, u64) -> *mut c_void>,
    pub release: Option<unsafe extern "C" fn(*const dtrun_host, *mut c_void)>,
}
impl Default for dtrun_memory_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_kv_service {
    pub struct_size: u32,
    pub flags: u32,
    pub set: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, *const c_void, u64, *mut dtrun_error) -> dtrun_status>,
    pub get: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, i64, *mut *mut c_void, *mut u64, *mut dtrun_error) -> dtrun_status>,
    pub try_get: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, *mut *mut c_void, *mut u64, *mut dtrun_error) -> dtrun_status>,
    pub add: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, i64, *mut i64, *mut dtrun_error) -> dtrun_status>,
    pub compare_set: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, *const c_void, u64, *const c_void, u64, *mut i32, *mut dtrun_error) -> dtrun_status>,
    pub erase: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, *mut i32, *mut dtrun_error) -> dtrun_status>,
    pub wait_many: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, *const dtrun_string, u64, i64, *mut dtrun_error) -> dtrun_status>,
    pub open_part: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, dtrun_string, *const i32, u64, *mut *mut dtrun_kv, *mut dtrun_error) -> dtrun_status>,
    pub close_part: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv)>,
}
impl Default for dtrun_kv_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_clock_service {
    pub struct_size: u32,
    pub flags: u32,
    pub monotonic_ns: Option<unsafe extern "C" fn(*const dtrun_host) -> i64>,
    pub wall_ns: Option<unsafe extern "C" fn(*const dtrun_host) -> i64>,
}
impl Default for dtrun_clock_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_threads_service {
    pub struct_size: u32,
    pub flags: u32,
    pub on_start: Option<unsafe extern "C" fn(*const dtrun_host, *const c_char)>,
    pub on_stop: Option<unsafe extern "C" fn(*const dtrun_host)>,
}
impl Default for dtrun_threads_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_health_service {
    pub struct_size: u32,
    pub flags: u32,
    pub should_stop: Option<unsafe extern "C" fn(*const dtrun_host) -> i32>,
    pub report_peer: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_kv, i32, dtrun_string)>,
}
impl Default for dtrun_health_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_launch_query {
    pub struct_size: u32,
    pub flags: u32,
    pub host_count: i32,
    pub local_ranks: i32,
}
impl Default for dtrun_launch_query {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_launch_sink {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub fact: Option<unsafe extern "C" fn(*mut c_void, *const c_char, dtrun_string, *mut dtrun_error) -> dtrun_status>,
    pub env: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_launch_sink {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_backend_caps {
    pub struct_size: u32,
    pub flags: u32,
    pub ops: u64,
    pub dtypes: u64,
    pub reduces: u64,
    pub max_bytes: u64,
    pub reduce_dtypes: u64,
    pub device_kinds: u64,
}
impl Default for dtrun_backend_caps {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_support_query {
    pub struct_size: u32,
    pub flags: u32,
    pub kind: i32,
    pub dtype: i32,
    pub reduce: i32,
    pub device_kind: i32,
    pub device_index: i32,
}
impl Default for dtrun_support_query {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_comm_params {
    pub struct_size: u32,
    pub flags: u32,
    pub rank: i32,
    pub size: i32,
    pub host_count: i32,
    pub host: i32,
    pub generation: u64,
    pub name: dtrun_string,
    pub kv: *mut dtrun_kv,
    pub timeout_ns: i64,
    pub interface_name: dtrun_string,
    pub address: dtrun_string,
    pub local_processors: i32,
    pub local_rank: i32,
    pub hosts: *const i32,
    pub device_kind: i32,
    pub device_index: i32,
    pub parent: *mut dtrun_backend_comm,
}
impl Default for dtrun_comm_params {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_stream {
    pub struct_size: u32,
    pub flags: u32,
    pub device_kind: i32,
    pub device_index: i32,
    pub native: *mut c_void,
}
impl Default for dtrun_stream {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_abort_params {
    pub struct_size: u32,
    pub flags: u32,
    pub reason: dtrun_string,
}
impl Default for dtrun_abort_params {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_group_params {
    pub struct_size: u32,
    pub flags: u32,
}
impl Default for dtrun_group_params {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_mem_params {
    pub struct_size: u32,
    pub flags: u32,
    pub bytes: u64,
    pub alignment: u64,
    pub device_kind: i32,
    pub device_index: i32,
}
impl Default for dtrun_mem_params {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_snapshot_sink {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub line: Option<unsafe extern "C" fn(*mut c_void, dtrun_string, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_snapshot_sink {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_backend {
    pub struct_size: u32,
    pub flags: u32,
    pub launch_info: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_launch_query, *const dtrun_launch_sink, *mut dtrun_error) -> dtrun_status>,
    pub query_caps: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut dtrun_backend_caps, *mut dtrun_error) -> dtrun_status>,
    pub comm_create: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_comm_params, *mut *mut dtrun_backend_comm, *mut dtrun_error) -> dtrun_status>,
    pub comm_destroy: Option<unsafe extern "C" fn(*mut dtrun_backend_comm)>,
    pub comm_abort: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_abort_params, *mut dtrun_error) -> dtrun_status>,
    pub enqueue: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_op, *const dtrun_stream, *mut *mut dtrun_request, *mut dtrun_error) -> dtrun_status>,
    pub req_test: Option<unsafe extern "C" fn(*mut dtrun_request, *mut dtrun_error) -> dtrun_status>,
    pub req_wait_host: Option<unsafe extern "C" fn(*mut dtrun_request, i64, *mut dtrun_error) -> dtrun_status>,
    pub req_wait_stream: Option<unsafe extern "C" fn(*mut dtrun_request, *const dtrun_stream, *mut dtrun_error) -> dtrun_status>,
    pub req_release: Option<unsafe extern "C" fn(*mut dtrun_request)>,
    pub snapshot: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_snapshot_sink)>,
    pub group_begin: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_group_params, *mut dtrun_error) -> dtrun_status>,
    pub group_end: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_group_params, *mut dtrun_error) -> dtrun_status>,
    pub mem_alloc: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_mem_params, *mut *mut c_void, *mut dtrun_error) -> dtrun_status>,
    pub mem_free: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *mut c_void)>,
    pub query_support: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_support_query, *mut dtrun_error) -> dtrun_status>,
    pub mem_register: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *const dtrun_mem_params, *mut c_void, *mut dtrun_error) -> dtrun_status>,
    pub mem_deregister: Option<unsafe extern "C" fn(*mut dtrun_backend_comm, *mut c_void)>,
}
impl Default for dtrun_backend {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_env_entry {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub value: *const c_char,
}
impl Default for dtrun_env_entry {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_job_host {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub first_rank: i32,
    pub local_size: i32,
    pub cores: i32,
    pub reserved: i32,
}
impl Default for dtrun_job_host {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_job {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub argv: *const *const c_char,
    pub argc: u64,
    pub cwd: *const c_char,
    pub hosts: *const dtrun_job_host,
    pub host_count: u64,
    pub world_size: i32,
    pub reserved: i32,
    pub master_addr: *const c_char,
    pub master_port: *const c_char,
    pub inherited: Option<unsafe extern "C" fn(*const dtrun_job, *const c_char) -> *const c_char>,
    pub run_dir: *const c_char,
    pub generation: *const c_char,
    pub program: *const c_char,
    pub bind: *const c_char,
}
impl Default for dtrun_job {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_process {
    pub struct_size: u32,
    pub flags: u32,
    pub host_index: i32,
    pub rank: i32,
    pub local_rank: i32,
    pub rank_count: i32,
    pub argv: *const *const c_char,
    pub argc: u64,
    pub env: *const dtrun_env_entry,
    pub env_count: u64,
    pub cwd: *const c_char,
}
impl Default for dtrun_process {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_plan_sink {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub process: Option<unsafe extern "C" fn(*mut c_void, *const dtrun_process, *mut dtrun_error) -> dtrun_status>,
    pub note: Option<unsafe extern "C" fn(*mut c_void, dtrun_string, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_plan_sink {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_hosts_query {
    pub struct_size: u32,
    pub flags: u32,
    pub variable: Option<unsafe extern "C" fn(*const dtrun_hosts_query, *const c_char) -> *const c_char>,
}
impl Default for dtrun_hosts_query {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_allocated_host {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const c_char,
    pub slots: i32,
    pub reserved: i32,
}
impl Default for dtrun_allocated_host {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_allocation {
    pub struct_size: u32,
    pub flags: u32,
    pub hosts: *const dtrun_allocated_host,
    pub host_count: u64,
    pub min_hosts: i32,
    pub max_hosts: i32,
    pub own_index: i32,
    pub rank_port: i32,
    pub root_address: *const c_char,
    pub processes_per_host: *const c_char,
    pub evidence: *const c_char,
    pub implies: *const *const c_char,
    pub implies_count: u64,
    pub sharing: *const c_char,
}
impl Default for dtrun_allocation {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_hosts_sink {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub allocation: Option<unsafe extern "C" fn(*mut c_void, *const dtrun_allocation, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_hosts_sink {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_connect_query {
    pub struct_size: u32,
    pub flags: u32,
    pub hosts: *const *const c_char,
    pub host_count: u64,
    pub argv: *const *const c_char,
    pub argc: u64,
    pub variable: Option<unsafe extern "C" fn(*const dtrun_connect_query, *const c_char) -> *const c_char>,
}
impl Default for dtrun_connect_query {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_connect_command {
    pub struct_size: u32,
    pub flags: u32,
    pub argv: *const *const c_char,
    pub argc: u64,
    pub hosts: *const u64,
    pub host_count: u64,
    pub host_variable: *const c_char,
    pub trial: *const c_char,
    pub ending: *const c_char,
}
impl Default for dtrun_connect_command {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_connect_sink {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub command: Option<unsafe extern "C" fn(*mut c_void, *const dtrun_connect_command, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_connect_sink {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_launcher {
    pub struct_size: u32,
    pub flags: u32,
    pub plan: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_job, *const dtrun_plan_sink, *mut dtrun_error) -> dtrun_status>,
    pub find_hosts: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_hosts_query, *const dtrun_hosts_sink, *mut dtrun_error) -> dtrun_status>,
    pub connect: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_connect_query, *const dtrun_connect_sink, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_launcher {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_memory {
    pub struct_size: u32,
    pub flags: u32,
    pub device_kind: i32,
    pub device_index: i32,
}
impl Default for dtrun_memory {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_stream_params {
    pub struct_size: u32,
    pub flags: u32,
    pub device_index: i32,
    pub priority: i32,
}
impl Default for dtrun_stream_params {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_device {
    pub struct_size: u32,
    pub flags: u32,
    pub kind: i32,
    pub reserved: u32,
    pub count: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut i32, *mut dtrun_error) -> dtrun_status>,
    pub current: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut i32, *mut dtrun_error) -> dtrun_status>,
    pub describe: Option<unsafe extern "C" fn(*mut dtrun_instance, i32, *mut c_char, u64, *mut dtrun_error) -> dtrun_status>,
    pub memory_of: Option<unsafe extern "C" fn(*mut dtrun_instance, *const c_void, *mut dtrun_memory, *mut dtrun_error) -> dtrun_status>,
    pub mem_alloc: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_mem_params, *mut *mut c_void, *mut dtrun_error) -> dtrun_status>,
    pub mem_free: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_mem_params, *mut c_void)>,
    pub stream_create: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_stream_params, *mut dtrun_stream, *mut dtrun_error) -> dtrun_status>,
    pub stream_destroy: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_stream)>,
    pub stream_capturing: Option<unsafe extern "C" fn(*mut dtrun_instance, *const dtrun_stream, *mut i32, *mut dtrun_error) -> dtrun_status>,
    pub copy: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut c_void, *const c_void, u64, *const dtrun_stream, *mut dtrun_error) -> dtrun_status>,
    pub event_create: Option<unsafe extern "C" fn(*mut dtrun_instance, i32, *mut *mut dtrun_event, *mut dtrun_error) -> dtrun_status>,
    pub event_destroy: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut dtrun_event)>,
    pub event_record: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut dtrun_event, *const dtrun_stream, *mut dtrun_error) -> dtrun_status>,
    pub event_test: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut dtrun_event, *mut dtrun_error) -> dtrun_status>,
    pub event_wait: Option<unsafe extern "C" fn(*mut dtrun_instance, *mut dtrun_event, *const dtrun_stream, *mut dtrun_error) -> dtrun_status>,
    pub counter_wait: Option<unsafe extern "C" fn(*mut dtrun_instance, *const u32, u32, *const dtrun_stream, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_device {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_plugin {
    pub struct_size: u32,
    pub flags: u32,
    pub magic: u64,
    pub abi_major: u32,
    pub abi_minor_built: u32,
    pub abi_minor_required: u32,
    pub kind: i32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub vendor: *const c_char,
    pub license: *const c_char,
    pub summary: *const c_char,
    pub options: *const dtrun_option,
    pub option_count: u64,
    pub init: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_options, *mut *mut dtrun_instance, *mut dtrun_error) -> dtrun_status>,
    pub shutdown: Option<unsafe extern "C" fn(*mut dtrun_instance)>,
    pub backend: *const dtrun_backend,
    pub launcher: *const dtrun_launcher,
    pub get_extension: Option<unsafe extern "C" fn(*mut dtrun_instance, *const c_char) -> *const c_void>,
    pub device: *const dtrun_device,
}
impl Default for dtrun_plugin {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_reduction {
    pub struct_size: u32,
    pub flags: u32,
    pub dtype: i32,
    pub reduce: i32,
    pub out: *mut c_void,
    pub sources: *const *const c_void,
    pub source_count: u64,
    pub count: u64,
}
impl Default for dtrun_reduction {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_kernels_service {
    pub struct_size: u32,
    pub flags: u32,
    pub element_bytes: Option<unsafe extern "C" fn(*const dtrun_host, i32) -> u64>,
    pub has_meaning: Option<unsafe extern "C" fn(*const dtrun_host, i32, i32) -> i32>,
    pub reduce: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_reduction, *mut dtrun_error) -> dtrun_status>,
    pub scale: Option<unsafe extern "C" fn(*const dtrun_host, *mut c_void, *const c_void, u64, i32, f64, *mut dtrun_error) -> dtrun_status>,
}
impl Default for dtrun_kernels_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_messenger {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub rank: i32,
    pub size: i32,
    pub send: Option<unsafe extern "C" fn(*mut c_void, i32, *const c_void, u64, *mut *mut dtrun_message, *mut dtrun_error) -> dtrun_status>,
    pub recv: Option<unsafe extern "C" fn(*mut c_void, i32, *mut c_void, u64, *mut *mut dtrun_message, *mut dtrun_error) -> dtrun_status>,
    pub wait: Option<unsafe extern "C" fn(*mut c_void, *mut dtrun_message, *mut dtrun_error) -> dtrun_status>,
    pub cancel: Option<unsafe extern "C" fn(*mut c_void)>,
}
impl Default for dtrun_messenger {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_collectives_service {
    pub struct_size: u32,
    pub flags: u32,
    pub open: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_messenger, *mut *mut dtrun_collectives, *mut dtrun_error) -> dtrun_status>,
    pub run: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_collectives, *const dtrun_op, *mut dtrun_error) -> dtrun_status>,
    pub close: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_collectives)>,
}
impl Default for dtrun_collectives_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_runner {
    pub struct_size: u32,
    pub flags: u32,
    pub context: *mut c_void,
    pub run: Option<unsafe extern "C" fn(*mut c_void, *const dtrun_op, *mut dtrun_error) -> dtrun_status>,
    pub abandon: Option<unsafe extern "C" fn(*mut c_void, *const dtrun_op)>,
}
impl Default for dtrun_runner {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_calls_service {
    pub struct_size: u32,
    pub flags: u32,
    pub open: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_runner, i32, *const c_char, *mut *mut dtrun_calls, *mut dtrun_error) -> dtrun_status>,
    pub enqueue: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_calls, *const dtrun_op, *mut *mut dtrun_call, *mut dtrun_error) -> dtrun_status>,
    pub test: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_call, *mut dtrun_error) -> dtrun_status>,
    pub wait: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_call, i64, *mut dtrun_error) -> dtrun_status>,
    pub release: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_call)>,
    pub close: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_calls)>,
}
impl Default for dtrun_calls_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtrun_membership_service {
    pub struct_size: u32,
    pub flags: u32,
    pub open: Option<unsafe extern "C" fn(*const dtrun_host, *const dtrun_comm_params, *mut *mut dtrun_membership, *mut dtrun_error) -> dtrun_status>,
    pub join: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership, dtrun_string, *const c_void, u64, i64, *mut dtrun_error) -> dtrun_status>,
    pub said: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership, dtrun_string, i32, *mut *mut c_void, *mut u64, *mut dtrun_error) -> dtrun_status>,
    pub leave: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership, *const c_void, u64, *mut dtrun_error) -> dtrun_status>,
    pub left: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership, i32, *mut *mut c_void, *mut u64, *mut dtrun_error) -> dtrun_status>,
    pub publish_failure: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership, *const dtrun_error, *mut dtrun_error) -> dtrun_status>,
    pub first_failure: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership, *mut i32, *mut dtrun_error, *mut dtrun_error) -> dtrun_status>,
    pub close: Option<unsafe extern "C" fn(*const dtrun_host, *mut dtrun_membership)>,
}
impl Default for dtrun_membership_service {
    fn default() -> Self {
        let mut value: Self = unsafe { std::mem::zeroed() };
        value.struct_size = std::mem::size_of::<Self>() as u32;
        value
    }
}

/// What of a caller's error its struct_size covers is filled; `error` may be null. Returns `code`.
///
/// # Safety
/// `error` is null or points to a dtrun_error whose struct_size is set.
pub unsafe fn dtrun_error_set(error: *mut dtrun_error, code: dtrun_status, peer: i32, text: &str) -> dtrun_status {
    if error.is_null() {
        return code;
    }
    let size = (*error).struct_size as usize;
    let mut filled = dtrun_error { struct_size: size as u32, code, peer, ..Default::default() };
    let room = size.saturating_sub(std::mem::offset_of!(dtrun_error, message)).min(filled.message.len());
    let mut bytes = text.len().min(room.saturating_sub(1));
    while !text.is_char_boundary(bytes) {
        bytes -= 1;
    }
    for (to, from) in filled.message.iter_mut().zip(&text.as_bytes()[..bytes]) {
        *to = *from as c_char;
    }
    let whole = size.min(std::mem::size_of::<dtrun_error>());
    std::ptr::copy_nonoverlapping(&filled as *const _ as *const u8, error as *mut u8, whole);
    code
}

const _: () = {
    assert!(std::mem::size_of::<dtrun_string>() == 16);
    assert!(std::mem::size_of::<dtrun_error>() == 552);
    assert!(std::mem::size_of::<dtrun_op>() == 120);
    assert!(std::mem::size_of::<dtrun_option>() == 112);
    assert!(std::mem::size_of::<dtrun_options_service>() == 48);
    assert!(std::mem::size_of::<dtrun_host>() == 48);
    assert!(std::mem::size_of::<dtrun_log_service>() == 24);
    assert!(std::mem::size_of::<dtrun_memory_service>() == 24);
    assert!(std::mem::size_of::<dtrun_kv_service>() == 80);
    assert!(std::mem::size_of::<dtrun_clock_service>() == 24);
    assert!(std::mem::size_of::<dtrun_threads_service>() == 24);
    assert!(std::mem::size_of::<dtrun_health_service>() == 24);
    assert!(std::mem::size_of::<dtrun_launch_query>() == 16);
    assert!(std::mem::size_of::<dtrun_launch_sink>() == 32);
    assert!(std::mem::size_of::<dtrun_backend_caps>() == 56);
    assert!(std::mem::size_of::<dtrun_support_query>() == 28);
    assert!(std::mem::size_of::<dtrun_comm_params>() == 128);
    assert!(std::mem::size_of::<dtrun_stream>() == 24);
    assert!(std::mem::size_of::<dtrun_abort_params>() == 24);
    assert!(std::mem::size_of::<dtrun_group_params>() == 8);
    assert!(std::mem::size_of::<dtrun_mem_params>() == 32);
    assert!(std::mem::size_of::<dtrun_snapshot_sink>() == 24);
    assert!(std::mem::size_of::<dtrun_backend>() == 152);
    assert!(std::mem::size_of::<dtrun_env_entry>() == 24);
    assert!(std::mem::size_of::<dtrun_job_host>() == 32);
    assert!(std::mem::size_of::<dtrun_job>() == 120);
    assert!(std::mem::size_of::<dtrun_process>() == 64);
    assert!(std::mem::size_of::<dtrun_plan_sink>() == 32);
    assert!(std::mem::size_of::<dtrun_hosts_query>() == 16);
    assert!(std::mem::size_of::<dtrun_allocated_host>() == 24);
    assert!(std::mem::size_of::<dtrun_allocation>() == 88);
    assert!(std::mem::size_of::<dtrun_hosts_sink>() == 24);
    assert!(std::mem::size_of::<dtrun_connect_query>() == 48);
    assert!(std::mem::size_of::<dtrun_connect_command>() == 64);
    assert!(std::mem::size_of::<dtrun_connect_sink>() == 24);
    assert!(std::mem::size_of::<dtrun_launcher>() == 32);
    assert!(std::mem::size_of::<dtrun_memory>() == 16);
    assert!(std::mem::size_of::<dtrun_stream_params>() == 16);
    assert!(std::mem::size_of::<dtrun_device>() == 144);
    assert!(std::mem::size_of::<dtrun_plugin>() == 136);
    assert!(std::mem::size_of::<dtrun_reduction>() == 48);
    assert!(std::mem::size_of::<dtrun_kernels_service>() == 40);
    assert!(std::mem::size_of::<dtrun_messenger>() == 56);
    assert!(std::mem::size_of::<dtrun_collectives_service>() == 32);
    assert!(std::mem::size_of::<dtrun_runner>() == 32);
    assert!(std::mem::size_of::<dtrun_calls_service>() == 56);
    assert!(std::mem::size_of::<dtrun_membership_service>() == 72);
    assert!(std::mem::offset_of!(dtrun_string, data) == 0);
    assert!(std::mem::offset_of!(dtrun_string, size) == 8);
    assert!(std::mem::offset_of!(dtrun_error, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_error, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_error, code) == 8);
    assert!(std::mem::offset_of!(dtrun_error, peer) == 12);
    assert!(std::mem::offset_of!(dtrun_error, vendor_code) == 16);
    assert!(std::mem::offset_of!(dtrun_error, vendor_domain) == 24);
    assert!(std::mem::offset_of!(dtrun_error, message) == 40);
    assert!(std::mem::offset_of!(dtrun_op, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_op, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_op, kind) == 8);
    assert!(std::mem::offset_of!(dtrun_op, dtype) == 12);
    assert!(std::mem::offset_of!(dtrun_op, reduce) == 16);
    assert!(std::mem::offset_of!(dtrun_op, root) == 20);
    assert!(std::mem::offset_of!(dtrun_op, peer) == 24);
    assert!(std::mem::offset_of!(dtrun_op, tag) == 28);
    assert!(std::mem::offset_of!(dtrun_op, sequence) == 32);
    assert!(std::mem::offset_of!(dtrun_op, count) == 40);
    assert!(std::mem::offset_of!(dtrun_op, send) == 48);
    assert!(std::mem::offset_of!(dtrun_op, recv) == 56);
    assert!(std::mem::offset_of!(dtrun_op, timeout_ns) == 64);
    assert!(std::mem::offset_of!(dtrun_op, send_counts) == 72);
    assert!(std::mem::offset_of!(dtrun_op, send_offsets) == 80);
    assert!(std::mem::offset_of!(dtrun_op, recv_counts) == 88);
    assert!(std::mem::offset_of!(dtrun_op, recv_offsets) == 96);
    assert!(std::mem::offset_of!(dtrun_op, scale) == 104);
    assert!(std::mem::offset_of!(dtrun_op, source) == 112);
    assert!(std::mem::offset_of!(dtrun_option, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_option, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_option, key) == 8);
    assert!(std::mem::offset_of!(dtrun_option, r#type) == 16);
    assert!(std::mem::offset_of!(dtrun_option, scope) == 20);
    assert!(std::mem::offset_of!(dtrun_option, default_text) == 24);
    assert!(std::mem::offset_of!(dtrun_option, doc) == 32);
    assert!(std::mem::offset_of!(dtrun_option, long_doc) == 40);
    assert!(std::mem::offset_of!(dtrun_option, unit) == 48);
    assert!(std::mem::offset_of!(dtrun_option, min_text) == 56);
    assert!(std::mem::offset_of!(dtrun_option, max_text) == 64);
    assert!(std::mem::offset_of!(dtrun_option, choices) == 72);
    assert!(std::mem::offset_of!(dtrun_option, choice_count) == 80);
    assert!(std::mem::offset_of!(dtrun_option, since) == 88);
    assert!(std::mem::offset_of!(dtrun_option, env_alias) == 96);
    assert!(std::mem::offset_of!(dtrun_option, replaced_by) == 104);
    assert!(std::mem::offset_of!(dtrun_options_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_options_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_options_service, get_int) == 8);
    assert!(std::mem::offset_of!(dtrun_options_service, get_float) == 16);
    assert!(std::mem::offset_of!(dtrun_options_service, get_string) == 24);
    assert!(std::mem::offset_of!(dtrun_options_service, get_list) == 32);
    assert!(std::mem::offset_of!(dtrun_options_service, get_origin) == 40);
    assert!(std::mem::offset_of!(dtrun_host, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_host, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_host, abi_major) == 8);
    assert!(std::mem::offset_of!(dtrun_host, abi_minor) == 12);
    assert!(std::mem::offset_of!(dtrun_host, kind) == 16);
    assert!(std::mem::offset_of!(dtrun_host, in_probe) == 20);
    assert!(std::mem::offset_of!(dtrun_host, product) == 24);
    assert!(std::mem::offset_of!(dtrun_host, get_service) == 40);
    assert!(std::mem::offset_of!(dtrun_log_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_log_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_log_service, enabled) == 8);
    assert!(std::mem::offset_of!(dtrun_log_service, write) == 16);
    assert!(std::mem::offset_of!(dtrun_memory_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_memory_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_memory_service, allocate) == 8);
    assert!(std::mem::offset_of!(dtrun_memory_service, release) == 16);
    assert!(std::mem::offset_of!(dtrun_kv_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_kv_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_kv_service, set) == 8);
    assert!(std::mem::offset_of!(dtrun_kv_service, get) == 16);
    assert!(std::mem::offset_of!(dtrun_kv_service, try_get) == 24);
    assert!(std::mem::offset_of!(dtrun_kv_service, add) == 32);
    assert!(std::mem::offset_of!(dtrun_kv_service, compare_set) == 40);
    assert!(std::mem::offset_of!(dtrun_kv_service, erase) == 48);
    assert!(std::mem::offset_of!(dtrun_kv_service, wait_many) == 56);
    assert!(std::mem::offset_of!(dtrun_kv_service, open_part) == 64);
    assert!(std::mem::offset_of!(dtrun_kv_service, close_part) == 72);
    assert!(std::mem::offset_of!(dtrun_clock_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_clock_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_clock_service, monotonic_ns) == 8);
    assert!(std::mem::offset_of!(dtrun_clock_service, wall_ns) == 16);
    assert!(std::mem::offset_of!(dtrun_threads_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_threads_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_threads_service, on_start) == 8);
    assert!(std::mem::offset_of!(dtrun_threads_service, on_stop) == 16);
    assert!(std::mem::offset_of!(dtrun_health_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_health_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_health_service, should_stop) == 8);
    assert!(std::mem::offset_of!(dtrun_health_service, report_peer) == 16);
    assert!(std::mem::offset_of!(dtrun_launch_query, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_launch_query, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_launch_query, host_count) == 8);
    assert!(std::mem::offset_of!(dtrun_launch_query, local_ranks) == 12);
    assert!(std::mem::offset_of!(dtrun_launch_sink, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_launch_sink, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_launch_sink, context) == 8);
    assert!(std::mem::offset_of!(dtrun_launch_sink, fact) == 16);
    assert!(std::mem::offset_of!(dtrun_launch_sink, env) == 24);
    assert!(std::mem::offset_of!(dtrun_backend_caps, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_backend_caps, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_backend_caps, ops) == 8);
    assert!(std::mem::offset_of!(dtrun_backend_caps, dtypes) == 16);
    assert!(std::mem::offset_of!(dtrun_backend_caps, reduces) == 24);
    assert!(std::mem::offset_of!(dtrun_backend_caps, max_bytes) == 32);
    assert!(std::mem::offset_of!(dtrun_backend_caps, reduce_dtypes) == 40);
    assert!(std::mem::offset_of!(dtrun_backend_caps, device_kinds) == 48);
    assert!(std::mem::offset_of!(dtrun_support_query, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_support_query, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_support_query, kind) == 8);
    assert!(std::mem::offset_of!(dtrun_support_query, dtype) == 12);
    assert!(std::mem::offset_of!(dtrun_support_query, reduce) == 16);
    assert!(std::mem::offset_of!(dtrun_support_query, device_kind) == 20);
    assert!(std::mem::offset_of!(dtrun_support_query, device_index) == 24);
    assert!(std::mem::offset_of!(dtrun_comm_params, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_comm_params, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_comm_params, rank) == 8);
    assert!(std::mem::offset_of!(dtrun_comm_params, size) == 12);
    assert!(std::mem::offset_of!(dtrun_comm_params, host_count) == 16);
    assert!(std::mem::offset_of!(dtrun_comm_params, host) == 20);
    assert!(std::mem::offset_of!(dtrun_comm_params, generation) == 24);
    assert!(std::mem::offset_of!(dtrun_comm_params, name) == 32);
    assert!(std::mem::offset_of!(dtrun_comm_params, kv) == 48);
    assert!(std::mem::offset_of!(dtrun_comm_params, timeout_ns) == 56);
    assert!(std::mem::offset_of!(dtrun_comm_params, interface_name) == 64);
    assert!(std::mem::offset_of!(dtrun_comm_params, address) == 80);
    assert!(std::mem::offset_of!(dtrun_comm_params, local_processors) == 96);
    assert!(std::mem::offset_of!(dtrun_comm_params, local_rank) == 100);
    assert!(std::mem::offset_of!(dtrun_comm_params, hosts) == 104);
    assert!(std::mem::offset_of!(dtrun_comm_params, device_kind) == 112);
    assert!(std::mem::offset_of!(dtrun_comm_params, device_index) == 116);
    assert!(std::mem::offset_of!(dtrun_comm_params, parent) == 120);
    assert!(std::mem::offset_of!(dtrun_stream, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_stream, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_stream, device_kind) == 8);
    assert!(std::mem::offset_of!(dtrun_stream, device_index) == 12);
    assert!(std::mem::offset_of!(dtrun_stream, native) == 16);
    assert!(std::mem::offset_of!(dtrun_abort_params, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_abort_params, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_abort_params, reason) == 8);
    assert!(std::mem::offset_of!(dtrun_group_params, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_group_params, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_mem_params, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_mem_params, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_mem_params, bytes) == 8);
    assert!(std::mem::offset_of!(dtrun_mem_params, alignment) == 16);
    assert!(std::mem::offset_of!(dtrun_mem_params, device_kind) == 24);
    assert!(std::mem::offset_of!(dtrun_mem_params, device_index) == 28);
    assert!(std::mem::offset_of!(dtrun_snapshot_sink, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_snapshot_sink, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_snapshot_sink, context) == 8);
    assert!(std::mem::offset_of!(dtrun_snapshot_sink, line) == 16);
    assert!(std::mem::offset_of!(dtrun_backend, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_backend, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_backend, launch_info) == 8);
    assert!(std::mem::offset_of!(dtrun_backend, query_caps) == 16);
    assert!(std::mem::offset_of!(dtrun_backend, comm_create) == 24);
    assert!(std::mem::offset_of!(dtrun_backend, comm_destroy) == 32);
    assert!(std::mem::offset_of!(dtrun_backend, comm_abort) == 40);
    assert!(std::mem::offset_of!(dtrun_backend, enqueue) == 48);
    assert!(std::mem::offset_of!(dtrun_backend, req_test) == 56);
    assert!(std::mem::offset_of!(dtrun_backend, req_wait_host) == 64);
    assert!(std::mem::offset_of!(dtrun_backend, req_wait_stream) == 72);
    assert!(std::mem::offset_of!(dtrun_backend, req_release) == 80);
    assert!(std::mem::offset_of!(dtrun_backend, snapshot) == 88);
    assert!(std::mem::offset_of!(dtrun_backend, group_begin) == 96);
    assert!(std::mem::offset_of!(dtrun_backend, group_end) == 104);
    assert!(std::mem::offset_of!(dtrun_backend, mem_alloc) == 112);
    assert!(std::mem::offset_of!(dtrun_backend, mem_free) == 120);
    assert!(std::mem::offset_of!(dtrun_backend, query_support) == 128);
    assert!(std::mem::offset_of!(dtrun_backend, mem_register) == 136);
    assert!(std::mem::offset_of!(dtrun_backend, mem_deregister) == 144);
    assert!(std::mem::offset_of!(dtrun_env_entry, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_env_entry, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_env_entry, name) == 8);
    assert!(std::mem::offset_of!(dtrun_env_entry, value) == 16);
    assert!(std::mem::offset_of!(dtrun_job_host, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_job_host, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_job_host, name) == 8);
    assert!(std::mem::offset_of!(dtrun_job_host, first_rank) == 16);
    assert!(std::mem::offset_of!(dtrun_job_host, local_size) == 20);
    assert!(std::mem::offset_of!(dtrun_job_host, cores) == 24);
    assert!(std::mem::offset_of!(dtrun_job_host, reserved) == 28);
    assert!(std::mem::offset_of!(dtrun_job, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_job, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_job, name) == 8);
    assert!(std::mem::offset_of!(dtrun_job, argv) == 16);
    assert!(std::mem::offset_of!(dtrun_job, argc) == 24);
    assert!(std::mem::offset_of!(dtrun_job, cwd) == 32);
    assert!(std::mem::offset_of!(dtrun_job, hosts) == 40);
    assert!(std::mem::offset_of!(dtrun_job, host_count) == 48);
    assert!(std::mem::offset_of!(dtrun_job, world_size) == 56);
    assert!(std::mem::offset_of!(dtrun_job, reserved) == 60);
    assert!(std::mem::offset_of!(dtrun_job, master_addr) == 64);
    assert!(std::mem::offset_of!(dtrun_job, master_port) == 72);
    assert!(std::mem::offset_of!(dtrun_job, inherited) == 80);
    assert!(std::mem::offset_of!(dtrun_job, run_dir) == 88);
    assert!(std::mem::offset_of!(dtrun_job, generation) == 96);
    assert!(std::mem::offset_of!(dtrun_job, program) == 104);
    assert!(std::mem::offset_of!(dtrun_job, bind) == 112);
    assert!(std::mem::offset_of!(dtrun_process, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_process, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_process, host_index) == 8);
    assert!(std::mem::offset_of!(dtrun_process, rank) == 12);
    assert!(std::mem::offset_of!(dtrun_process, local_rank) == 16);
    assert!(std::mem::offset_of!(dtrun_process, rank_count) == 20);
    assert!(std::mem::offset_of!(dtrun_process, argv) == 24);
    assert!(std::mem::offset_of!(dtrun_process, argc) == 32);
    assert!(std::mem::offset_of!(dtrun_process, env) == 40);
    assert!(std::mem::offset_of!(dtrun_process, env_count) == 48);
    assert!(std::mem::offset_of!(dtrun_process, cwd) == 56);
    assert!(std::mem::offset_of!(dtrun_plan_sink, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_plan_sink, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_plan_sink, context) == 8);
    assert!(std::mem::offset_of!(dtrun_plan_sink, process) == 16);
    assert!(std::mem::offset_of!(dtrun_plan_sink, note) == 24);
    assert!(std::mem::offset_of!(dtrun_hosts_query, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_hosts_query, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_hosts_query, variable) == 8);
    assert!(std::mem::offset_of!(dtrun_allocated_host, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_allocated_host, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_allocated_host, name) == 8);
    assert!(std::mem::offset_of!(dtrun_allocated_host, slots) == 16);
    assert!(std::mem::offset_of!(dtrun_allocated_host, reserved) == 20);
    assert!(std::mem::offset_of!(dtrun_allocation, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_allocation, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_allocation, hosts) == 8);
    assert!(std::mem::offset_of!(dtrun_allocation, host_count) == 16);
    assert!(std::mem::offset_of!(dtrun_allocation, min_hosts) == 24);
    assert!(std::mem::offset_of!(dtrun_allocation, max_hosts) == 28);
    assert!(std::mem::offset_of!(dtrun_allocation, own_index) == 32);
    assert!(std::mem::offset_of!(dtrun_allocation, rank_port) == 36);
    assert!(std::mem::offset_of!(dtrun_allocation, root_address) == 40);
    assert!(std::mem::offset_of!(dtrun_allocation, processes_per_host) == 48);
    assert!(std::mem::offset_of!(dtrun_allocation, evidence) == 56);
    assert!(std::mem::offset_of!(dtrun_allocation, implies) == 64);
    assert!(std::mem::offset_of!(dtrun_allocation, implies_count) == 72);
    assert!(std::mem::offset_of!(dtrun_allocation, sharing) == 80);
    assert!(std::mem::offset_of!(dtrun_hosts_sink, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_hosts_sink, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_hosts_sink, context) == 8);
    assert!(std::mem::offset_of!(dtrun_hosts_sink, allocation) == 16);
    assert!(std::mem::offset_of!(dtrun_connect_query, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_connect_query, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_connect_query, hosts) == 8);
    assert!(std::mem::offset_of!(dtrun_connect_query, host_count) == 16);
    assert!(std::mem::offset_of!(dtrun_connect_query, argv) == 24);
    assert!(std::mem::offset_of!(dtrun_connect_query, argc) == 32);
    assert!(std::mem::offset_of!(dtrun_connect_query, variable) == 40);
    assert!(std::mem::offset_of!(dtrun_connect_command, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_connect_command, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_connect_command, argv) == 8);
    assert!(std::mem::offset_of!(dtrun_connect_command, argc) == 16);
    assert!(std::mem::offset_of!(dtrun_connect_command, hosts) == 24);
    assert!(std::mem::offset_of!(dtrun_connect_command, host_count) == 32);
    assert!(std::mem::offset_of!(dtrun_connect_command, host_variable) == 40);
    assert!(std::mem::offset_of!(dtrun_connect_command, trial) == 48);
    assert!(std::mem::offset_of!(dtrun_connect_command, ending) == 56);
    assert!(std::mem::offset_of!(dtrun_connect_sink, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_connect_sink, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_connect_sink, context) == 8);
    assert!(std::mem::offset_of!(dtrun_connect_sink, command) == 16);
    assert!(std::mem::offset_of!(dtrun_launcher, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_launcher, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_launcher, plan) == 8);
    assert!(std::mem::offset_of!(dtrun_launcher, find_hosts) == 16);
    assert!(std::mem::offset_of!(dtrun_launcher, connect) == 24);
    assert!(std::mem::offset_of!(dtrun_memory, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_memory, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_memory, device_kind) == 8);
    assert!(std::mem::offset_of!(dtrun_memory, device_index) == 12);
    assert!(std::mem::offset_of!(dtrun_stream_params, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_stream_params, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_stream_params, device_index) == 8);
    assert!(std::mem::offset_of!(dtrun_stream_params, priority) == 12);
    assert!(std::mem::offset_of!(dtrun_device, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_device, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_device, kind) == 8);
    assert!(std::mem::offset_of!(dtrun_device, reserved) == 12);
    assert!(std::mem::offset_of!(dtrun_device, count) == 16);
    assert!(std::mem::offset_of!(dtrun_device, current) == 24);
    assert!(std::mem::offset_of!(dtrun_device, describe) == 32);
    assert!(std::mem::offset_of!(dtrun_device, memory_of) == 40);
    assert!(std::mem::offset_of!(dtrun_device, mem_alloc) == 48);
    assert!(std::mem::offset_of!(dtrun_device, mem_free) == 56);
    assert!(std::mem::offset_of!(dtrun_device, stream_create) == 64);
    assert!(std::mem::offset_of!(dtrun_device, stream_destroy) == 72);
    assert!(std::mem::offset_of!(dtrun_device, stream_capturing) == 80);
    assert!(std::mem::offset_of!(dtrun_device, copy) == 88);
    assert!(std::mem::offset_of!(dtrun_device, event_create) == 96);
    assert!(std::mem::offset_of!(dtrun_device, event_destroy) == 104);
    assert!(std::mem::offset_of!(dtrun_device, event_record) == 112);
    assert!(std::mem::offset_of!(dtrun_device, event_test) == 120);
    assert!(std::mem::offset_of!(dtrun_device, event_wait) == 128);
    assert!(std::mem::offset_of!(dtrun_device, counter_wait) == 136);
    assert!(std::mem::offset_of!(dtrun_plugin, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_plugin, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_plugin, magic) == 8);
    assert!(std::mem::offset_of!(dtrun_plugin, abi_major) == 16);
    assert!(std::mem::offset_of!(dtrun_plugin, abi_minor_built) == 20);
    assert!(std::mem::offset_of!(dtrun_plugin, abi_minor_required) == 24);
    assert!(std::mem::offset_of!(dtrun_plugin, kind) == 28);
    assert!(std::mem::offset_of!(dtrun_plugin, name) == 32);
    assert!(std::mem::offset_of!(dtrun_plugin, version) == 40);
    assert!(std::mem::offset_of!(dtrun_plugin, vendor) == 48);
    assert!(std::mem::offset_of!(dtrun_plugin, license) == 56);
    assert!(std::mem::offset_of!(dtrun_plugin, summary) == 64);
    assert!(std::mem::offset_of!(dtrun_plugin, options) == 72);
    assert!(std::mem::offset_of!(dtrun_plugin, option_count) == 80);
    assert!(std::mem::offset_of!(dtrun_plugin, init) == 88);
    assert!(std::mem::offset_of!(dtrun_plugin, shutdown) == 96);
    assert!(std::mem::offset_of!(dtrun_plugin, backend) == 104);
    assert!(std::mem::offset_of!(dtrun_plugin, launcher) == 112);
    assert!(std::mem::offset_of!(dtrun_plugin, get_extension) == 120);
    assert!(std::mem::offset_of!(dtrun_plugin, device) == 128);
    assert!(std::mem::offset_of!(dtrun_reduction, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_reduction, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_reduction, dtype) == 8);
    assert!(std::mem::offset_of!(dtrun_reduction, reduce) == 12);
    assert!(std::mem::offset_of!(dtrun_reduction, out) == 16);
    assert!(std::mem::offset_of!(dtrun_reduction, sources) == 24);
    assert!(std::mem::offset_of!(dtrun_reduction, source_count) == 32);
    assert!(std::mem::offset_of!(dtrun_reduction, count) == 40);
    assert!(std::mem::offset_of!(dtrun_kernels_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_kernels_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_kernels_service, element_bytes) == 8);
    assert!(std::mem::offset_of!(dtrun_kernels_service, has_meaning) == 16);
    assert!(std::mem::offset_of!(dtrun_kernels_service, reduce) == 24);
    assert!(std::mem::offset_of!(dtrun_kernels_service, scale) == 32);
    assert!(std::mem::offset_of!(dtrun_messenger, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_messenger, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_messenger, context) == 8);
    assert!(std::mem::offset_of!(dtrun_messenger, rank) == 16);
    assert!(std::mem::offset_of!(dtrun_messenger, size) == 20);
    assert!(std::mem::offset_of!(dtrun_messenger, send) == 24);
    assert!(std::mem::offset_of!(dtrun_messenger, recv) == 32);
    assert!(std::mem::offset_of!(dtrun_messenger, wait) == 40);
    assert!(std::mem::offset_of!(dtrun_messenger, cancel) == 48);
    assert!(std::mem::offset_of!(dtrun_collectives_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_collectives_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_collectives_service, open) == 8);
    assert!(std::mem::offset_of!(dtrun_collectives_service, run) == 16);
    assert!(std::mem::offset_of!(dtrun_collectives_service, close) == 24);
    assert!(std::mem::offset_of!(dtrun_runner, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_runner, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_runner, context) == 8);
    assert!(std::mem::offset_of!(dtrun_runner, run) == 16);
    assert!(std::mem::offset_of!(dtrun_runner, abandon) == 24);
    assert!(std::mem::offset_of!(dtrun_calls_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_calls_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_calls_service, open) == 8);
    assert!(std::mem::offset_of!(dtrun_calls_service, enqueue) == 16);
    assert!(std::mem::offset_of!(dtrun_calls_service, test) == 24);
    assert!(std::mem::offset_of!(dtrun_calls_service, wait) == 32);
    assert!(std::mem::offset_of!(dtrun_calls_service, release) == 40);
    assert!(std::mem::offset_of!(dtrun_calls_service, close) == 48);
    assert!(std::mem::offset_of!(dtrun_membership_service, struct_size) == 0);
    assert!(std::mem::offset_of!(dtrun_membership_service, flags) == 4);
    assert!(std::mem::offset_of!(dtrun_membership_service, open) == 8);
    assert!(std::mem::offset_of!(dtrun_membership_service, join) == 16);
    assert!(std::mem::offset_of!(dtrun_membership_service, said) == 24);
    assert!(std::mem::offset_of!(dtrun_membership_service, leave) == 32);
    assert!(std::mem::offset_of!(dtrun_membership_service, left) == 40);
    assert!(std::mem::offset_of!(dtrun_membership_service, publish_failure) == 48);
    assert!(std::mem::offset_of!(dtrun_membership_service, first_failure) == 56);
    assert!(std::mem::offset_of!(dtrun_membership_service, close) == 64);
};
