//! Messages over the connections of a communicator, and how it fails.
//!
//! As simple as the rules allow: a message is copied when it is sent and when it is received. Two threads for each
//! peer, one that sends and one that receives, so that a message waits for no other rank's.

use crate::abi::*;
use crate::host::*;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Goes before each message. A receive takes the first one with an equal header, so one of another size never.
#[derive(Clone, Copy, PartialEq)]
pub struct Header {
    pub key: u64,
    pub bytes: u64,
}

/// A moment, or never.
pub type Deadline = Option<Instant>;

pub fn deadline_after(timeout_ns: i64) -> Deadline {
    u64::try_from(timeout_ns).ok().and_then(|ns| Instant::now().checked_add(Duration::from_nanos(ns)))
}

fn passed(deadline: Deadline) -> bool {
    deadline.map_or(false, |moment| Instant::now() >= moment)
}

/// For calls that take a time limit: none when there is no deadline, and never zero, which they refuse.
fn time_left(deadline: Deadline) -> Option<Duration> {
    deadline.map(|moment| moment.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
}

/// A receive that was started. Its memory is the caller's again once it is done.
pub struct Receive {
    pub peer: i32,
    pub header: Header,
    pub memory: *mut u8,
    pub deadline: Deadline,
    done: bool,
    failed: bool,
}
unsafe impl Send for Receive {}

/// Started and not dropped before it is done: the list of its peer holds it, too.
pub type Started = Arc<Mutex<Receive>>;

#[derive(Default)]
struct Peer {
    stream: Option<TcpStream>,         // none: this rank
    sends: VecDeque<Vec<u8>>,          // with headers; the first one is under way
    messages: Vec<(Header, Vec<u8>)>,  // without a receive so far
    receives: Vec<Started>,
    gone: bool,
}

#[derive(Default)]
struct State {
    peers: Vec<Peer>,
    failure: Option<Failure>,
    reported: bool,
    shut: bool,
}

pub struct Links {
    members: Membership,
    state: Mutex<State>,
    changed: Condvar,
    moved: AtomicU64, // pieces that were sent
}

/// The connections with their threads. Dropped when every receive is done.
pub struct Running {
    pub links: Arc<Links>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Connects all ranks. Ends within the timeout of `params`.
    pub fn start(host: Host, params: &dtrun_comm_params, address: &str) -> Outcome<Running> {
        let members = Membership::open(host, params)?;
        let streams = connect_all(&members, params, address)?;
        let mut peers = Vec::new();
        let mut ends = Vec::new();
        for (rank, stream) in streams.into_iter().enumerate() {
            if let Some(stream) = &stream {
                let copy = || stream.try_clone().map_err(|e| Failure::system(DTRUN_SYSTEM, -1, "copying a descriptor", e));
                ends.push((rank, copy()?, copy()?));
            }
            peers.push(Peer { stream, ..Default::default() });
        }
        let state = Mutex::new(State { peers, ..Default::default() });
        let links = Arc::new(Links { members, state, changed: Condvar::new(), moved: AtomicU64::new(0) });
        let mut running = Running { links: links.clone(), threads: Vec::new() };
        for (rank, to, from) in ends {
            let (sender, receiver) = (links.clone(), links.clone());
            running.spawn(move || host.as_thread(c("tcp-send\0"), || sender.send_all(rank, to)))?;
            running.spawn(move || host.as_thread(c("tcp-receive\0"), || receiver.receive_all(rank, from)))?;
        }
        Ok(running)
    }
    fn spawn(&mut self, body: impl FnOnce() + Send + 'static) -> Outcome<()> {
        let thread = std::thread::Builder::new().spawn(body);
        self.threads.push(thread.map_err(|e| Failure::system(DTRUN_SYSTEM, -1, "cannot start a thread", e))?);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Hands over what was sent, until it moves no more for 10 s.
        let idle = |state: &State| state.shut || state.peers.iter().all(|peer| peer.sends.is_empty());
        let moved = || self.links.moved.load(Ordering::Relaxed);
        let mut state = self.links.lock();
        loop {
            let before = moved();
            let wait = self.links.changed.wait_timeout_while(state, Duration::from_secs(10), |state| !idle(state));
            state = wait.unwrap().0;
            if idle(&state) || moved() == before {
                break;
            }
        }
        drop(state);
        self.links.members.leave(); // before the connections end, so that no rank takes that for a failure
        self.links.shut();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Links {
    /// The failure of the communicator; core hears first who is to blame.
    pub fn check(&self) -> Outcome<()> {
        let mut state = self.lock();
        let failure = match state.failure.clone() {
            Some(failure) => failure,
            None => return Ok(()),
        };
        let report = failure.code == DTRUN_REMOTE_FAILURE && !std::mem::replace(&mut state.reported, true);
        drop(state);
        if report {
            self.members.report(&failure);
        }
        Err(failure)
    }
    /// Ends every receive and tells the other ranks. Only the first failure counts.
    pub fn fail(&self, failure: Failure) {
        {
            let mut state = self.lock();
            if state.failure.is_some() {
                return;
            }
            state.failure = Some(failure.clone());
        }
        self.members.publish(&failure); // before the connections end, so that others find it
        self.shut();
    }
    pub fn fail_timeout(&self, what: &str, peer: i32) {
        let text = format!("timed out {what}; look at what the other ranks are doing");
        self.fail(Failure::new(DTRUN_TIMEOUT, peer, text));
    }

    /// The memory is the caller's again at once.
    pub fn send(&self, peer: i32, header: Header, data: &[u8]) -> Outcome<()> {
        self.check()?;
        let mut message = Vec::with_capacity(16 + data.len());
        message.extend(header.key.to_le_bytes());
        message.extend(header.bytes.to_le_bytes());
        message.extend(data);
        self.lock().peers[peer as usize].sends.push_back(message);
        self.changed.notify_all();
        Ok(())
    }
    /// `memory` has header.bytes and stays valid until the receive is done.
    pub fn start(&self, peer: i32, header: Header, memory: *mut u8, deadline: Deadline) -> Started {
        let receive = Arc::new(Mutex::new(Receive { peer, header, memory, deadline, done: false, failed: false }));
        let mut state = self.lock();
        let shut = state.shut;
        let at = &mut state.peers[peer as usize];
        at.receives.push(receive.clone());
        at.match_up();
        if shut {
            at.end_receives();
        }
        let lost = at.gone && !receive.lock().unwrap().done;
        drop(state);
        self.changed.notify_all();
        if lost {
            self.lost(peer as usize, true);
        }
        receive
    }
    /// DTRUN_PENDING when it still runs after `timeout_ns`.
    pub fn wait(&self, receive: &Started, timeout_ns: i64) -> Outcome<dtrun_status> {
        let patience = deadline_after(timeout_ns);
        let (peer, deadline) = { let known = receive.lock().unwrap(); (known.peer, known.deadline) };
        let done = || receive.lock().unwrap().done;
        let mut state = self.lock();
        while !done() {
            if passed(deadline) {
                drop(state);
                self.fail_timeout(&format!("waiting for rank {peer}"), peer);
                state = self.lock();
                while !done() {
                    state = self.changed.wait(state).unwrap(); // another failure may be ahead of this one
                }
                break;
            }
            if passed(patience) {
                return Ok(DTRUN_PENDING);
            }
            let next = [patience, deadline].into_iter().flatten().min();
            state = match next {
                None => self.changed.wait(state).unwrap(),
                Some(moment) => {
                    let left = moment.saturating_duration_since(Instant::now());
                    self.changed.wait_timeout(state, left).unwrap().0
                }
            };
        }
        drop(state);
        if receive.lock().unwrap().failed {
            self.check()?;
        }
        Ok(DTRUN_OK)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
    fn send_all(&self, rank: usize, mut stream: TcpStream) {
        let mut state = self.lock();
        loop {
            state = self.changed.wait_while(state, |s| !s.shut && s.peers[rank].sends.is_empty()).unwrap();
            if state.shut {
                return;
            }
            let gone = state.peers[rank].gone;
            // An empty one takes its place, so that the queue is empty only when it has been sent.
            let message = std::mem::take(&mut state.peers[rank].sends[0]);
            drop(state);
            let mut pieces = message.chunks(1 << 20);
            if gone || !pieces.all(|piece| stream.write_all(piece).map(|_| self.moved.fetch_add(1, Ordering::Relaxed)).is_ok()) {
                return self.lost(rank, true);
            }
            state = self.lock();
            state.peers[rank].sends.pop_front();
            self.changed.notify_all();
        }
    }
    fn receive_all(&self, rank: usize, mut stream: TcpStream) {
        let mut numbers = [0u8; 16];
        while stream.read_exact(&mut numbers).is_ok() {
            let number = |at: usize| u64::from_le_bytes(numbers[at..at + 8].try_into().unwrap());
            let header = Header { key: number(0), bytes: number(8) };
            let mut data = vec![0u8; header.bytes as usize];
            if stream.read_exact(&mut data).is_err() {
                break;
            }
            let mut state = self.lock();
            state.peers[rank].messages.push((header, data));
            state.peers[rank].match_up();
            self.changed.notify_all();
        }
        let mut state = self.lock();
        state.peers[rank].gone = true;
        let needed = !state.peers[rank].receives.is_empty();
        drop(state);
        self.lost(rank, needed);
    }
    /// A connection has ended: a failure, unless its rank has left and is not needed.
    fn lost(&self, rank: usize, needed: bool) {
        if self.lock().shut {
            return;
        }
        if let Some(failure) = self.members.first_failure() {
            return self.fail(failure);
        }
        let peer = rank as i32;
        let text = if !self.members.has_left(peer) {
            format!("the connection with rank {rank} has ended")
        } else if needed {
            format!("rank {rank} has left; every rank must make the same calls")
        } else {
            return;
        };
        self.fail(Failure::new(DTRUN_REMOTE_FAILURE, peer, text));
    }
    fn shut(&self) {
        let mut state = self.lock();
        state.shut = true;
        for peer in &mut state.peers {
            if let Some(stream) = &peer.stream {
                let _ = stream.shutdown(Shutdown::Both);
            }
            peer.end_receives();
        }
        self.changed.notify_all();
    }
}

impl Peer {
    fn end_receives(&mut self) {
        for receive in self.receives.drain(..) {
            let mut receive = receive.lock().unwrap();
            receive.failed = true;
            receive.done = true;
        }
    }
    /// Gives messages to their receives.
    fn match_up(&mut self) {
        let receives = &mut self.receives;
        self.messages.retain(|(header, data)| {
            let at = match receives.iter().position(|one| one.lock().unwrap().header == *header) {
                // One that is late has timed out, whether or not its rank has looked.
                Some(at) if !passed(receives[at].lock().unwrap().deadline) => at,
                _ => return true,
            };
            let receive = receives.remove(at);
            let mut receive = receive.lock().unwrap();
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), receive.memory, data.len()) };
            receive.done = true;
            false
        });
    }
}

/// A connection with each other rank; each connects to those below it. Who connects says the secret of the other,
/// which strangers do not know, and its own rank.
fn connect_all(members: &Membership, params: &dtrun_comm_params, address: &str) -> Outcome<Vec<Option<TcpStream>>> {
    let deadline = deadline_after(params.timeout_ns);
    let failed = |what: &str, e| Failure::system(DTRUN_SYSTEM, -1, what, e);
    let listener = TcpListener::bind((address, 0)).map_err(|e| failed(&format!("cannot listen on '{address}'"), e))?;
    listener.set_nonblocking(true).map_err(|e| failed("cannot listen", e))?;
    let place = listener.local_addr().map_err(|e| failed("cannot listen", e))?;
    let mut secret = [0u8; 16];
    let mut random = std::fs::File::open("/dev/urandom").map_err(|e| failed("no random numbers", e))?;
    random.read_exact(&mut secret).map_err(|e| failed("no random numbers", e))?;
    let secret = format!("{:032x}", u128::from_le_bytes(secret));
    // A rank listens before it joins, so no rank connects too early.
    members.join(c("tcp\0"), &format!("{place} {secret}"), params.timeout_ns)?;
    let mut streams: Vec<Option<TcpStream>> = (0..params.size).map(|_| None).collect();
    for peer in 0..params.rank {
        let said = members.said(c("tcp\0"), peer)?;
        let (place, secret) = said.split_once(' ').unwrap_or_default();
        let failed = |e| Failure::system(DTRUN_REMOTE_FAILURE, peer, &format!("cannot connect to rank {peer}"), e);
        let place: SocketAddr = place.parse().map_err(|e| failed(std::io::Error::new(ErrorKind::InvalidData, e)))?;
        let mut stream = match time_left(deadline) {
            None => TcpStream::connect(place),
            Some(time) => TcpStream::connect_timeout(&place, time),
        }
        .map_err(failed)?;
        stream.set_write_timeout(time_left(deadline)).map_err(failed)?;
        stream.write_all(format!("{secret} {:08}", params.rank).as_bytes()).map_err(failed)?;
        streams[peer as usize] = Some(stream);
    }
    let mut missing = params.size - 1 - params.rank;
    while missing > 0 {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) if passed(deadline) => {
                let absent = (params.rank + 1..params.size).find(|rank| streams[*rank as usize].is_none()).unwrap_or(-1);
                return Err(Failure::new(DTRUN_TIMEOUT, absent, format!("rank {absent} has not connected")));
            }
            Err(_) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        let mut hello = [0u8; 41];
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let heard = stream.set_nonblocking(false).and_then(|_| stream.read_exact(&mut hello));
        let hello = String::from_utf8_lossy(&hello);
        let (said, rank) = hello.split_once(' ').unwrap_or_default();
        let rank = rank.parse().unwrap_or(params.size);
        if heard.is_ok() && said == secret && rank > params.rank && rank < params.size {
            missing -= i32::from(streams[rank as usize].replace(stream).is_none());
        }
    }
    for stream in streams.iter().flatten() {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(None);
        let _ = stream.set_write_timeout(None);
    }
    Ok(streams)
}
