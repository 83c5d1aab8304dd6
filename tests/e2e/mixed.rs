//! Several threads do anything to the same VIs, in any order. No call hangs or panics, each fails only as
//! its page says, and every descriptor that was posted comes back exactly once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cosim::simulation::seeded::SimulationConfig;
use nic_model::link::Faults;
use tests::{Buffer, DeviceKind, Node, Pair, Setup, on_every_kind};
use vipl::{Completion, Cq, Descriptor, Queue, Reliability, Vi, ViAttributes, VipReturn, Waiting};

/// VIs on each side; the first half has completion queues.
const VIS: usize = 4;
const BUFFERS: usize = 40;
const SHORT: Duration = Duration::from_micros(30);

/// What the threads of a node share.
struct Side<'a> {
    node: &'a Node,
    other: &'a Node,
    vis: Vec<Vi>,
    cq: Cq,
    pool: Arc<Pool>,
    /// Posts on queues with the completion queue, and entries taken of it.
    posts: AtomicU64,
    entries: Arc<AtomicU64>,
    _buffers: Vec<Buffer>,
}

/// Small numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 20) % end as u64).unwrap()
    }
}

/// The code of a call that may fail in these ways, and only these.
#[track_caller]
fn may<T>(result: vipl::Result<T>, codes: &[VipReturn]) {
    if let Err(error) = result {
        assert!(codes.contains(&error.code), "{error}");
    }
}

/// Descriptors that nobody uses, and how many came back without error.
struct Pool {
    free: Mutex<Vec<Descriptor>>,
    good: AtomicU64,
}

impl Pool {
    /// Keeps a descriptor that came back; gives the code if it is an error.
    fn keep(&self, completion: Completion) -> Option<VipReturn> {
        let (descriptor, code) = match completion {
            Ok(descriptor) => (Some(descriptor), None),
            Err(error) => (error.descriptor, Some(error.code)),
        };
        self.good.fetch_add(u64::from(code.is_none()), Ordering::Relaxed);
        self.free.lock().unwrap().extend(descriptor);
        code
    }
}

impl<'a> Side<'a> {
    fn new(node: &'a Node, other: &'a Node) -> Self {
        let cq = node.nic.create_cq(8).unwrap();
        let attributes = ViAttributes::new(Reliability::Delivery, node.tag);
        let vis = (0..VIS).map(|i| {
            let cq = (i < VIS / 2).then_some(&cq);
            node.nic.create_vi(attributes, cq, cq).unwrap()
        });
        let vis = vis.collect();
        let buffers: Vec<_> = (0..BUFFERS).map(|_| Buffer::new(node, 300)).collect();
        let descriptors = buffers.iter().map(|buffer| buffer.descriptor.clone()).collect();
        let pool = Arc::new(Pool { free: Mutex::new(descriptors), good: AtomicU64::new(0) });
        let (posts, entries) = (AtomicU64::new(0), Arc::default());
        Self { node, other, vis, cq, pool, posts, entries, _buffers: buffers }
    }

    fn post(&self, index: usize, queue: Queue) {
        let Some(descriptor) = self.pool.free.lock().unwrap().pop() else { return };
        let vi = &self.vis[index];
        match queue {
            Queue::Send => vi.post_send(&descriptor).unwrap(),
            Queue::Recv => vi.post_recv(&descriptor).unwrap(),
        }
        self.posts.fetch_add(u64::from(index < VIS / 2), Ordering::Relaxed);
    }

    fn take(&self, completion: Completion) {
        let code = self.pool.keep(completion);
        let known = [VipReturn::NotDone, VipReturn::DescriptorError, VipReturn::Timeout];
        assert!(code.is_none_or(|code| known.contains(&code)), "{code:?}");
    }

    /// One thing, on one VI.
    fn act(&self, random: &mut Random) {
        let index = random.below(VIS);
        let vi = &self.vis[index];
        let names = [self.node, self.other].map(|node| node.address(&[index.to_le_bytes()[0]]));
        let setting_up =
            [VipReturn::InvalidState, VipReturn::Timeout, VipReturn::NoMatch, VipReturn::Reject];
        match random.below(16) {
            0..3 => self.post(index, Queue::Recv),
            3..5 => self.post(index, Queue::Send),
            5 => self.take(vi.recv_done()),
            6 => self.take(vi.send_wait(SHORT)),
            7 => self.take(vi.recv_wait(SHORT)),
            8 => {
                let [local, remote] = &names;
                let timeout = SHORT * 20;
                may(vi.connect_peer_request(local, remote, timeout), &setting_up);
            }
            9 => {
                let pending = [VipReturn::NotDone];
                may(vi.connect_peer_done(), &[&setting_up[..], &pending].concat());
            }
            10 => may(vi.disconnect(), &[VipReturn::InvalidState]),
            11 => may(vi.set_attributes(vi.attributes()), &[VipReturn::InvalidState]),
            12 => self.cq.resize(4 << random.below(6)).unwrap(),
            13 => match self.cq.wait(SHORT) {
                Ok(entry) => {
                    self.entries.fetch_add(1, Ordering::Relaxed);
                    self.take(entry.vi.done(entry.queue));
                }
                Err(code) => assert_eq!(code, VipReturn::Timeout),
            },
            14 => self.notify(index, random.below(2) == 0),
            _ => {
                let [local, remote] = &names;
                if random.below(2) == 0 {
                    may(vi.connect_request(local, remote, SHORT * 10), &setting_up);
                } else if let Ok(request) = self.node.nic.connect_wait(local, SHORT * 10) {
                    may(request.accept(vi), &setting_up);
                }
            }
        }
    }

    fn notify(&self, index: usize, send: bool) {
        let pool = Arc::clone(&self.pool);
        if index < VIS / 2 {
            let entries = Arc::clone(&self.entries);
            let handler = move |entry: vipl::CqEntry| {
                entries.fetch_add(1, Ordering::Relaxed);
                pool.keep(entry.vi.done(entry.queue));
            };
            return self.cq.notify(handler).unwrap();
        }
        let handler = move |completion| {
            pool.keep(completion);
        };
        let vi = &self.vis[index];
        if send { vi.send_notify(handler) } else { vi.recv_notify(handler) }.unwrap();
    }

    /// Takes everything back, and counts it.
    /// Gives how many came back without error.
    fn finish(&self) -> u64 {
        for vi in &self.vis {
            vi.disconnect().unwrap();
            for queue in [Queue::Send, Queue::Recv] {
                // All is flushed: each is done, until nothing is posted.
                loop {
                    let completion = vi.done(queue);
                    let taken = match &completion {
                        Ok(_) => true,
                        Err(error) => {
                            assert_eq!(error.code, VipReturn::DescriptorError);
                            error.descriptor.is_some()
                        }
                    };
                    self.pool.keep(completion);
                    if !taken {
                        break;
                    }
                }
            }
        }
        while self.cq.done().is_ok() {
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
        let mut addresses: Vec<_> =
            self.pool.free.lock().unwrap().iter().map(Descriptor::address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), BUFFERS, "every descriptor once");
        assert_eq!(self.pool.free.lock().unwrap().len(), BUFFERS, "no descriptor twice");
        let counts = [self.posts.load(Ordering::Relaxed), self.entries.load(Ordering::Relaxed)];
        assert_eq!(counts[0], counts[1], "an entry for each completion");
        self.vis.iter().for_each(|vi| vi.destroy().unwrap());
        self.cq.destroy().unwrap();
        self.pool.good.load(Ordering::Relaxed)
    }
}

fn anything_in_any_order(kind: DeviceKind) {
    let (mut good, seeds) = (0, kind.size(12, 1));
    // The last two once showed an entry too few, and a disconnect that did not end.
    for seed in (1..=seeds).chain([65, 173]) {
        let faults = Faults { loss: 0.01, ..Faults::default() };
        let waiting =
            if seed % 3 == 0 { Waiting::default() } else { Setup::sleeping(kind).waiting };
        let simulation = SimulationConfig { seed, ..SimulationConfig::default() };
        let setup = Setup::with_faults(kind, seed, faults);
        let pair = Pair::with(&Setup { waiting, simulation, ..setup });
        let sides = [Side::new(&pair.a, &pair.b), Side::new(&pair.b, &pair.a)];
        let slots: Vec<_> = (0..6).map(|i| pair.simulation.slot(&format!("thread {i}"))).collect();
        std::thread::scope(|scope| {
            for (i, slot) in (0_u64..).zip(slots) {
                let side = &sides[usize::try_from(i % 2).unwrap()];
                let mut random = Random(seed * 1000 + i + 1);
                scope.spawn(move || slot.run(|| (0..120).for_each(|_| side.act(&mut random))));
            }
        });
        pair.settle();
        good += sides.iter().map(Side::finish).sum::<u64>();
        drop(sides);
        let (a, b) = pair.connected(Reliability::Reception);
        pair.assert_works(&a, &b);
        pair.assert_no_stray_access();
    }
    assert!(good > 10 * seeds, "{good} messages: connections come about, and carry something");
}

on_every_kind! {
    anything_in_any_order,
}
