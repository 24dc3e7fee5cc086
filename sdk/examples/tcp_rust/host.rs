//! The host's services, as Rust: tables that live as long as the process, from any thread.

use crate::abi::*;
use std::ffi::{c_void, CStr, CString};

/// Why something failed, as a dtrun_error says it.
#[derive(Clone)]
pub struct Failure {
    pub code: dtrun_status,
    pub peer: i32,
    pub text: String,
}

impl Failure {
    pub fn new(code: dtrun_status, peer: i32, text: impl Into<String>) -> Failure {
        Failure { code, peer, text: text.into() }
    }
    pub fn system(code: dtrun_status, peer: i32, what: &str, error: std::io::Error) -> Failure {
        Failure::new(code, peer, format!("{what}: {error}"))
    }
    fn of(error: &dtrun_error, code: dtrun_status) -> Failure {
        let text = unsafe { CStr::from_ptr(error.message.as_ptr()) };
        Failure::new(code, error.peer, text.to_string_lossy())
    }
}

pub type Outcome<T> = Result<T, Failure>;

/// Fills the caller's error, which may be null.
///
/// # Safety
/// `err` comes from a caller of the ABI.
pub unsafe fn status_of(outcome: Outcome<dtrun_status>, err: *mut dtrun_error) -> dtrun_status {
    outcome.unwrap_or_else(|failure| dtrun_error_set(err, failure.code, failure.peer, &failure.text))
}

/// Runs a call of the ABI and reads what it reports.
pub fn check(call: impl FnOnce(*mut dtrun_error) -> dtrun_status) -> Outcome<dtrun_status> {
    let mut error = dtrun_error::default();
    match call(&mut error) {
        status @ (DTRUN_OK | DTRUN_PENDING) => Ok(status),
        status => Err(Failure::of(&error, status)),
    }
}

/// A constant text for C, which is written with the NUL at its end: literals of that kind need Rust 1.77.
pub fn c(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap()
}

/// A dtrun_string has a NUL behind its last byte, as a CStr has.
fn view(text: &CStr) -> dtrun_string {
    dtrun_string { data: text.as_ptr(), size: text.to_bytes().len() as u64 }
}

#[derive(Clone, Copy)]
pub struct Host {
    pub raw: *const dtrun_host,
    pub kernels: &'static dtrun_kernels_service,
    pub collectives: &'static dtrun_collectives_service,
    pub calls: &'static dtrun_calls_service,
    members: &'static dtrun_membership_service,
    memory: &'static dtrun_memory_service,
    threads: &'static dtrun_threads_service,
    health: &'static dtrun_health_service,
}
unsafe impl Send for Host {}
unsafe impl Sync for Host {}

impl Host {
    /// # Safety
    /// `raw` is the table that dtrun gave to the plugin.
    pub unsafe fn new(raw: *const dtrun_host) -> Outcome<Host> {
        unsafe fn table<T>(raw: *const dtrun_host, id: &CStr) -> Outcome<&'static T> {
            let found = ((*raw).get_service.unwrap())(raw, id.as_ptr()) as *const T;
            let lacking = || Failure::new(DTRUN_UNSUPPORTED, -1, format!("this dtrun has no {id:?}; upgrade dtrun"));
            found.as_ref().ok_or_else(lacking)
        }
        Ok(Host {
            raw,
            kernels: table(raw, DTRUN_KERNELS_SERVICE)?,
            collectives: table(raw, DTRUN_COLLECTIVES_SERVICE)?,
            calls: table(raw, DTRUN_CALLS_SERVICE)?,
            members: table(raw, DTRUN_MEMBERSHIP_SERVICE)?,
            memory: table(raw, DTRUN_MEMORY_SERVICE)?,
            threads: table(raw, DTRUN_THREADS_SERVICE)?,
            health: table(raw, DTRUN_HEALTH_SERVICE)?,
        })
    }
    /// Runs `body` as a thread that dtrun knows; call it first on a new one.
    pub fn as_thread(&self, name: &CStr, body: impl FnOnce()) {
        unsafe { (self.threads.on_start.unwrap())(self.raw, name.as_ptr()) };
        body();
        unsafe { (self.threads.on_stop.unwrap())(self.raw) };
    }
}

/// The ranks of a communicator, as its key-value space knows them.
pub struct Membership {
    host: Host,
    kv: *mut dtrun_kv,
    opened: *mut dtrun_membership,
}
unsafe impl Send for Membership {}
unsafe impl Sync for Membership {}

impl Membership {
    pub fn open(host: Host, params: &dtrun_comm_params) -> Outcome<Membership> {
        let mut opened = std::ptr::null_mut();
        check(|e| unsafe { (host.members.open.unwrap())(host.raw, params, &mut opened, e) })?;
        Ok(Membership { host, kv: params.kv, opened })
    }
    pub fn join(&self, topic: &CStr, value: &str, timeout_ns: i64) -> Outcome<dtrun_status> {
        let (data, bytes) = (value.as_ptr() as *const c_void, value.len() as u64);
        check(|e| unsafe {
            (self.host.members.join.unwrap())(self.host.raw, self.opened, view(topic), data, bytes, timeout_ns, e)
        })
    }
    pub fn said(&self, topic: &CStr, peer: i32) -> Outcome<String> {
        let said = self.host.members.said.unwrap();
        self.take(|value, bytes, e| unsafe { said(self.host.raw, self.opened, view(topic), peer, value, bytes, e) })
    }
    pub fn leave(&self) {
        let nothing = std::ptr::null();
        unsafe { (self.host.members.leave.unwrap())(self.host.raw, self.opened, nothing, 0, std::ptr::null_mut()) };
    }
    pub fn has_left(&self, peer: i32) -> bool {
        let left = self.host.members.left.unwrap();
        self.take(|value, bytes, e| unsafe { left(self.host.raw, self.opened, peer, value, bytes, e) }).is_ok()
    }
    pub fn publish(&self, failure: &Failure) {
        let mut error = dtrun_error::default();
        unsafe {
            dtrun_error_set(&mut error, failure.code, failure.peer, &failure.text);
            (self.host.members.publish_failure.unwrap())(self.host.raw, self.opened, &error, std::ptr::null_mut());
        }
    }
    /// The first failure of all, as this rank should report it.
    pub fn first_failure(&self) -> Option<Failure> {
        let (mut rank, mut found) = (-1, dtrun_error::default());
        let first = self.host.members.first_failure.unwrap();
        check(|e| unsafe { first(self.host.raw, self.opened, &mut rank, &mut found, e) }).ok()?;
        Some(Failure::of(&found, found.code))
    }
    /// Tells core who is to blame.
    pub fn report(&self, failure: &Failure) {
        let report = self.host.health.report_peer.unwrap();
        let text = CString::new(failure.text.replace('\0', " ")).unwrap();
        unsafe { report(self.host.raw, self.kv, failure.peer, view(&text)) };
    }

    fn take(&self, ask: impl FnOnce(*mut *mut c_void, *mut u64, *mut dtrun_error) -> dtrun_status) -> Outcome<String> {
        let (mut value, mut bytes) = (std::ptr::null_mut(), 0);
        check(|e| ask(&mut value, &mut bytes, e))?;
        let text = unsafe {
            String::from_utf8_lossy(std::slice::from_raw_parts(value as *const u8, bytes as usize)).into_owned()
        };
        unsafe { (self.host.memory.release.unwrap())(self.host.raw, value) };
        Ok(text)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        unsafe { (self.host.members.close.unwrap())(self.host.raw, self.opened) };
    }
}
