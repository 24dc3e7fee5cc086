//! Each rank sends the next one three messages of 1000 bytes, and prints what the transport counted.
//!
//!   DTRUN_INCLUDE=SDK/include rustc --edition 2021 -L PREFIX/lib -l dtrun counters.rs
//!   dtrun --plugin-dir out --set backend.name=tcp_c --set comm.local=none -n 2 -- ./counters

#[allow(non_camel_case_types, dead_code)]
mod dtrun {
    include!(concat!(env!("DTRUN_INCLUDE"), "/dtrun/dtrun_abi.rs"));
    include!(concat!(env!("DTRUN_INCLUDE"), "/dtrun/dtrun.rs"));
}

use dtrun::*;
use std::ffi::CStr;
use std::os::raw::c_void;
use std::ptr::null_mut;

/// link_counts of counters.h.
#[repr(C)]
#[derive(Default)]
struct Counts {
    struct_size: u32,
    flags: u32,
    messages_sent: u64,
    bytes_sent: u64,
    messages_received: u64,
    bytes_received: u64,
}

/// link_counters.
#[repr(C)]
struct Counters {
    struct_size: u32,
    flags: u32,
    read: unsafe extern "C" fn(*mut dtrun_backend_comm, *mut Counts, *mut dtrun_error) -> dtrun_status,
}

/// Calls `function`; its failure as a text.
fn check(function: impl FnOnce(*mut dtrun_error) -> dtrun_status) -> Result<(), String> {
    let mut error = dtrun_error::default();
    if function(&mut error) == DTRUN_OK {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned())
}

fn main() {
    if let Err(message) = run() {
        eprintln!("{}", message);
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let id = CStr::from_bytes_with_nul(b"dtrun_examples.counters/1\0").unwrap();
    let (out, mut received) = ([0u8; 1000], [0u8; 1000]);
    unsafe {
        check(|e| dtrun_init(e))?;
        let (world, rank, size) = (dtrun_world(), dtrun_rank(), dtrun_world_size());
        let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
        let mut found = dtrun_extension::default();
        check(|e| dtrun_comm_extension(world, id.as_ptr(), &mut found, e))?;
        for _ in 0..3 {
            let (from, to) = (out.as_ptr() as *const c_void, received.as_mut_ptr() as *mut c_void);
            check(|e| dtrun_group_begin(world, e))?;
            check(|e| dtrun_send(world, from, 1000, DTRUN_UINT8, next, 0, null_mut(), e))?;
            check(|e| dtrun_recv(world, to, 1000, DTRUN_UINT8, before, 0, null_mut(), e))?;
            check(|e| dtrun_group_end(world, null_mut(), e))?;
        }
        if found.comm.is_null() {
            println!("rank {}: another rank speaks for its host", rank);
        } else {
            let mut counts = Counts { struct_size: std::mem::size_of::<Counts>() as u32, ..Default::default() };
            check(|e| ((*(found.table as *const Counters)).read)(found.comm, &mut counts, e))?;
            println!(
                "rank {} over {}: sent {} messages, {} bytes; received {} messages, {} bytes",
                rank,
                CStr::from_ptr(found.backend).to_string_lossy(),
                counts.messages_sent,
                counts.bytes_sent,
                counts.messages_received,
                counts.bytes_received
            );
        }
        dtrun_finalize();
    }
    Ok(())
}
