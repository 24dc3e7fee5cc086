//! A backend over TCP in Rust: messages by links.rs; order and collectives by the host's services. No crates.

#[allow(non_camel_case_types, dead_code)]
mod abi {
    include!(concat!(env!("DTRUN_INCLUDE"), "/dtrun/dtrun_abi.rs"));
}
mod host;
mod links;

use abi::*;
use host::*;
use links::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, Once};

/// The collective that runs.
#[derive(Default)]
struct Current {
    key: u64,
    deadline: Deadline,
    receives: Vec<Started>,
}

/// Behind a dtrun_backend_comm.
struct Comm {
    host: Host,
    calls: *mut dtrun_calls,
    collectives: *mut dtrun_collectives,
    current: Mutex<Current>,
    running: Running, // dropped last
}

impl Comm {
    fn links(&self) -> &Links {
        &self.running.links
    }
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap()
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        unsafe {
            (self.host.calls.close.unwrap())(self.host.raw, self.calls);
            (self.host.collectives.close.unwrap())(self.host.raw, self.collectives);
        }
    }
}

/// Behind a dtrun_request.
enum Request {
    Receive(*const Comm, Started),
    Call(*const Comm, *mut dtrun_call),
}

unsafe fn bytes_of<'a>(data: *const c_void, bytes: u64) -> &'a [u8] {
    if bytes == 0 { &[] } else { std::slice::from_raw_parts(data as *const u8, bytes as usize) }
}

// ---- the messages of a collective ----------------------------------------------------------

unsafe extern "C" fn messenger_send(
    context: *mut c_void, peer: i32, data: *const c_void, bytes: u64, _: *mut *mut dtrun_message, err: *mut dtrun_error,
) -> dtrun_status {
    let comm = &*(context as *const Comm);
    let key = comm.current().key;
    let sent = comm.links().send(peer, Header { key, bytes }, bytes_of(data, bytes));
    status_of(sent.map(|_| DTRUN_OK), err)
}

unsafe extern "C" fn messenger_recv(
    context: *mut c_void, peer: i32, data: *mut c_void, bytes: u64, out: *mut *mut dtrun_message, _: *mut dtrun_error,
) -> dtrun_status {
    let comm = &*(context as *const Comm);
    let mut current = comm.current();
    let header = Header { key: current.key, bytes };
    let receive = comm.links().start(peer, header, data as *mut u8, current.deadline);
    current.receives.push(receive);
    *out = current.receives.len() as *mut dtrun_message; // its number, from 1
    DTRUN_OK
}

unsafe extern "C" fn messenger_wait(
    context: *mut c_void, message: *mut dtrun_message, err: *mut dtrun_error,
) -> dtrun_status {
    let comm = &*(context as *const Comm);
    let receive = comm.current().receives[message as usize - 1].clone();
    status_of(comm.links().wait(&receive, -1), err)
}

unsafe extern "C" fn messenger_cancel(context: *mut c_void) {
    let comm = &*(context as *const Comm);
    comm.links().fail(Failure::new(DTRUN_INTERNAL, -1, "a collective has failed"));
    for receive in &comm.current().receives {
        let _ = comm.links().wait(receive, -1);
    }
}

// ---- one collective after another ----------------------------------------------------------

unsafe extern "C" fn run_collective(context: *mut c_void, op: *const dtrun_op, err: *mut dtrun_error) -> dtrun_status {
    let comm = &*(context as *const Comm);
    if let Err(failure) = comm.links().check() {
        return status_of(Err(failure), err);
    }
    let key = 1 << 32 | ((*op).sequence & 0xffff_ffff); // no tag of a message
    *comm.current() = Current { key, deadline: deadline_after((*op).timeout_ns), ..Default::default() };
    (comm.host.collectives.run.unwrap())(comm.host.raw, comm.collectives, op, err)
}

unsafe extern "C" fn abandon_collective(context: *mut c_void, _: *const dtrun_op) {
    (*(context as *const Comm)).links().fail_timeout("behind another call", -1);
}

// ---- the slots ------------------------------------------------------------------------------

unsafe extern "C" fn query_caps(_: *mut dtrun_instance, out: *mut dtrun_backend_caps, _: *mut dtrun_error) -> dtrun_status {
    let up_to = |last: i32| (2u64 << last) - 2;
    let caps = dtrun_backend_caps {
        struct_size: (*out).struct_size, // the caller's, which may be longer
        features: DTRUN_CAP_ABORT as u64,
        ops: up_to(DTRUN_SCATTERV),
        dtypes: up_to(DTRUN_COMPLEX128),
        reduces: up_to(DTRUN_LOR),
        reduce_dtypes: up_to(DTRUN_COMPLEX128),
        device_kinds: 1 << DTRUN_DEVICE_HOST,
        ..std::mem::zeroed()
    };
    let bytes = std::mem::size_of::<dtrun_backend_caps>().min(caps.struct_size as usize);
    std::ptr::copy_nonoverlapping(&caps as *const _ as *const u8, out as *mut u8, bytes);
    DTRUN_OK
}

fn understand(flags: u32) -> Outcome<()> {
    match flags & DTRUN_FLAGS_MUST_UNDERSTAND {
        0 => Ok(()),
        _ => Err(Failure::new(DTRUN_UNSUPPORTED, -1, "the call has a flag that tcp_rust does not know")),
    }
}

unsafe fn create(host: Host, params: &dtrun_comm_params) -> Outcome<Box<Comm>> {
    understand(params.flags)?;
    let known = String::from_utf8_lossy(bytes_of(params.address.data as *const c_void, params.address.size));
    let address = if params.host_count == 1 { "127.0.0.1" } else { &known };
    let running = Running::start(host, params, address)?;
    let current = Mutex::new(Current::default());
    let mut comm = Box::new(Comm { host, calls: null_mut(), collectives: null_mut(), current, running });
    let context = &mut *comm as *mut Comm as *mut c_void;
    let messenger = dtrun_messenger {
        context,
        rank: params.rank,
        size: params.size,
        send: Some(messenger_send),
        recv: Some(messenger_recv),
        wait: Some(messenger_wait),
        cancel: Some(messenger_cancel),
        ..Default::default()
    };
    let runner =
        dtrun_runner { context, run: Some(run_collective), abandon: Some(abandon_collective), ..Default::default() };
    check(|e| (host.collectives.open.unwrap())(host.raw, &messenger, &mut comm.collectives, e))?;
    let name = c("tcp-calls\0").as_ptr();
    check(|e| (host.calls.open.unwrap())(host.raw, &runner, params.size, name, &mut comm.calls, e))?;
    Ok(comm)
}

unsafe extern "C" fn comm_create(
    this: *mut dtrun_instance, params: *const dtrun_comm_params, out: *mut *mut dtrun_backend_comm, err: *mut dtrun_error,
) -> dtrun_status {
    let made = create(*(this as *const Host), &*params);
    status_of(made.map(|comm| { *out = Box::into_raw(comm) as *mut dtrun_backend_comm; DTRUN_OK }), err)
}

unsafe extern "C" fn comm_destroy(comm: *mut dtrun_backend_comm) {
    drop(Box::from_raw(comm as *mut Comm));
}

unsafe extern "C" fn comm_abort(
    comm: *mut dtrun_backend_comm, params: *const dtrun_abort_params, err: *mut dtrun_error,
) -> dtrun_status {
    if let Err(failure) = understand((*params).flags) {
        return status_of(Err(failure), err);
    }
    let whole = (*params).struct_size as usize >= std::mem::size_of::<dtrun_abort_params>();
    let text = match whole {
        true => String::from_utf8_lossy(bytes_of((*params).reason.data as *const c_void, (*params).reason.size)),
        false => "aborted".into(), // a caller without reasons
    };
    (*(comm as *const Comm)).links().fail(Failure::new(DTRUN_ABORTED, -1, text));
    DTRUN_OK
}

unsafe fn start(comm: *mut Comm, op: &dtrun_op) -> Outcome<Option<Request>> {
    let Comm { host, calls, .. } = &*comm;
    let links = (*comm).links();
    links.check()?;
    understand(op.flags)?;
    let bytes = op.count * (host.kernels.element_bytes.unwrap())(host.raw, op.dtype);
    let header = Header { key: op.tag as u64, bytes };
    Ok(match op.kind {
        DTRUN_SEND => {
            links.send(op.peer, header, bytes_of(op.send, bytes))?;
            None
        }
        DTRUN_RECV => {
            let receive = links.start(op.peer, header, op.recv as *mut u8, deadline_after(op.timeout_ns));
            Some(Request::Receive(comm, receive))
        }
        _ => {
            let mut call = null_mut();
            check(|e| (host.calls.enqueue.unwrap())(host.raw, *calls, op, &mut call, e))?;
            Some(Request::Call(comm, call))
        }
    })
}

unsafe extern "C" fn enqueue(
    comm: *mut dtrun_backend_comm, op: *const dtrun_op, _: *const dtrun_stream, out: *mut *mut dtrun_request,
    err: *mut dtrun_error,
) -> dtrun_status {
    let started = start(comm as *mut Comm, &*op).map(|request| match request {
        None => DTRUN_OK,
        Some(request) => {
            *out = Box::into_raw(Box::new(request)) as *mut dtrun_request;
            DTRUN_PENDING
        }
    });
    status_of(started, err)
}

unsafe extern "C" fn req_wait_host(request: *mut dtrun_request, timeout_ns: i64, err: *mut dtrun_error) -> dtrun_status {
    match &*(request as *const Request) {
        Request::Receive(comm, receive) => status_of((**comm).links().wait(receive, timeout_ns), err),
        Request::Call(comm, call) => {
            let host = &(**comm).host;
            (host.calls.wait.unwrap())(host.raw, *call, timeout_ns, err)
        }
    }
}

unsafe extern "C" fn req_test(request: *mut dtrun_request, err: *mut dtrun_error) -> dtrun_status {
    req_wait_host(request, 0, err)
}

unsafe extern "C" fn req_release(request: *mut dtrun_request) {
    match *Box::from_raw(request as *mut Request) {
        Request::Receive(comm, receive) => drop((*comm).links().wait(&receive, -1)),
        Request::Call(comm, call) => ((*comm).host.calls.release.unwrap())((*comm).host.raw, call),
    }
}

// ---- the plugin -----------------------------------------------------------------------------

unsafe extern "C" fn init(
    params: *const dtrun_init_params, out: *mut *mut dtrun_instance, err: *mut dtrun_error,
) -> dtrun_status {
    let found = understand((*params).flags).and_then(|()| Host::new((*params).host));
    status_of(found.map(|host| { *out = Box::into_raw(Box::new(host)) as *mut dtrun_instance; DTRUN_OK }), err)
}

unsafe extern "C" fn shutdown(this: *mut dtrun_instance) {
    drop(Box::from_raw(this as *mut Host));
}

/// Tables are constant and live as long as the process.
fn make_table() -> *const dtrun_plugin {
    let backend: &'static dtrun_backend = Box::leak(Box::new(dtrun_backend {
        query_caps: Some(query_caps),
        comm_create: Some(comm_create),
        comm_destroy: Some(comm_destroy),
        comm_abort: Some(comm_abort),
        enqueue: Some(enqueue),
        req_test: Some(req_test),
        req_wait_host: Some(req_wait_host),
        req_release: Some(req_release),
        ..Default::default()
    }));
    Box::leak(Box::new(dtrun_plugin {
        magic: DTRUN_PLUGIN_MAGIC,
        abi_major: DTRUN_ABI_MAJOR,
        abi_minor_built: DTRUN_ABI_MINOR,
        abi_minor_required: DTRUN_ABI_REQUIRED,
        kind: DTRUN_KIND_BACKEND,
        name: c("tcp_rust\0").as_ptr(),
        version: c("1.0\0").as_ptr(),
        vendor: c("dtrun examples\0").as_ptr(),
        license: c("Apache-2.0\0").as_ptr(),
        summary: c("messages and collectives over TCP, in Rust\0").as_ptr(),
        options: null(),
        init: Some(init),
        shutdown: Some(shutdown),
        backend,
        ..Default::default()
    }))
}

/// # Safety
/// Called by dtrun, with its host table.
#[no_mangle]
pub unsafe extern "C" fn dtrun_plugin_entry_v1(
    _: *const dtrun_host, out: *mut *const dtrun_plugin, _: *mut dtrun_error,
) -> dtrun_status {
    static ONCE: Once = Once::new();
    static mut TABLE: *const dtrun_plugin = null();
    ONCE.call_once(|| TABLE = make_table());
    *out = TABLE;
    DTRUN_OK
}
