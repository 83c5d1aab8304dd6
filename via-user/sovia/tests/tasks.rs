//! Streams for the tasks of tokio.

use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

use proptest::prelude::*;
use sovia::tokio::{TcpListener, TcpStream};
use sovia::{Address, Device, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;
use vipl::{Nic, Waiting};

/// Bound of what must happen.
const SOON: Duration = Duration::from_secs(20);
/// In which nothing must happen.
const MOMENT: Duration = Duration::from_millis(20);

fn open(url: &str, policy: Policy) -> Device {
    Device::new(Nic::open(device::open(url).unwrap()), policy).unwrap()
}

fn devices(policy: Policy) -> [Device; 2] {
    [(); 2].map(|()| open("shm:", policy))
}

async fn listen(device: &Device) -> (TcpListener, Address) {
    let listener = TcpListener::bind(device, 0).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn pair([a, b]: &[Device; 2]) -> (TcpStream, TcpStream) {
    let (listener, address) = listen(b).await;
    let (client, server) = tokio::join!(TcpStream::connect(a, address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect()
}

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_time().build().unwrap()
}

/// Runs on one thread, and on two.
fn everywhere<F: Future<Output = ()>>(test: impl Fn() -> F) {
    let one = Builder::new_current_thread().enable_time().build().unwrap();
    for runtime in [one, runtime(2)] {
        runtime.block_on(async { timeout(SOON, test()).await.expect("it hangs") });
    }
}

/// Answers until the other side ends, then ends.
async fn answer(mut stream: TcpStream) {
    let (mut read, mut write) = stream.split();
    tokio::io::copy(&mut read, &mut write).await.unwrap();
    stream.shutdown().await.unwrap();
}

#[test]
fn many_tasks_have_their_bytes_answered() {
    everywhere(|| async {
        let [a, b] = devices(Policy::DACKS);
        let (listener, address) = listen(&b).await;
        let mut tasks = JoinSet::new();
        for client in 0..32 {
            let (a, address) = (a.clone(), address.clone());
            tasks.spawn(async move {
                let mut stream = TcpStream::connect(&a, address).await.unwrap();
                for round in 0..20 {
                    let sent = bytes(client * 100 + round, 1 + round * client * 13);
                    stream.write_all(&sent).await.unwrap();
                    let mut back = vec![0; sent.len()];
                    stream.read_exact(&mut back).await.unwrap();
                    assert!(back == sent, "client {client}, round {round}");
                }
            });
        }
        for _ in 0..32 {
            let (stream, _) = listener.accept().await.unwrap();
            tasks.spawn(answer(stream));
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    });
}

/// Both directions are full until the other side reads.
#[test]
fn halves_carry_more_than_any_window_both_ways_at_once() {
    const BYTES: usize = 3 << 20;
    everywhere(|| async {
        let both = devices(Policy::DACKS);
        let (client, server) = pair(&both).await;
        let mut tasks = JoinSet::new();
        for stream in [client, server] {
            let (mut read, mut write) = stream.into_split();
            tasks.spawn(async move {
                write.write_all(&bytes(0, BYTES)).await.unwrap();
                // Dropping the half ends its direction.
            });
            tasks.spawn(async move {
                let mut all = Vec::new();
                read.read_to_end(&mut all).await.unwrap();
                assert!(all == bytes(0, BYTES), "{} bytes", all.len());
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    });
}

#[test]
fn halves_of_one_stream_can_be_joined_and_end_nothing() {
    everywhere(|| async {
        let both = devices(Policy::DACKS);
        let ((client, mut server), (other, _keep)) = (pair(&both).await, pair(&both).await);
        let (read, write) = client.into_split();
        let (foreign, _ends) = other.into_split();
        let (_, write) = foreign.reunite(write).unwrap_err();
        let mut client = read.reunite(write).unwrap();
        client.write_all(b"whole").await.unwrap();
        let mut buffer = [0; 5];
        server.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"whole");
        assert!(timeout(MOMENT, server.read(&mut buffer)).await.is_err());
    });
}

/// Tasks that stop waiting lose nothing, nor do those who come after them.
#[test]
fn a_call_that_is_given_up_has_done_nothing() {
    everywhere(|| async {
        let both = devices(Policy::DACKS);
        let (mut client, mut server) = pair(&both).await;
        let mut buffer = [0; 64];
        for _ in 0..3 {
            assert!(timeout(MOMENT, client.read(&mut buffer)).await.is_err());
        }
        server.write_all(b"late").await.unwrap();
        assert_eq!(client.peek(&mut buffer).await.unwrap(), 4);
        assert_eq!(client.read(&mut buffer).await.unwrap(), 4);
        // Until nothing more goes.
        let block = vec![5; 100_000];
        let mut sent = 0;
        while let Ok(count) = timeout(MOMENT, client.write(&block)).await {
            sent += count.unwrap();
        }
        let mut all = vec![0; sent];
        server.read_exact(&mut all).await.unwrap();
        assert!(all.iter().all(|byte| *byte == 5));
        assert!(timeout(MOMENT, server.read(&mut buffer)).await.is_err());
        // A connection that comes while nobody waits is the next one's.
        let (listener, address) = listen(&both[1]).await;
        assert!(timeout(MOMENT, listener.accept()).await.is_err());
        let _client = TcpStream::connect(&both[0], address).await.unwrap();
        listener.accept().await.unwrap();
    });
}

/// Of two that wait each gets its own.
#[test]
fn several_tasks_accept() {
    everywhere(|| async {
        let [a, b] = devices(Policy::DACKS);
        let (listener, address) = listen(&b).await;
        let accept = async { listener.accept().await.unwrap().1 };
        let connect = || TcpStream::connect(&a, &address);
        let other = async { listener.accept().await.unwrap().1 };
        let (one, two, first, second) = tokio::join!(accept, other, connect(), connect());
        let mut accepted = [one, two];
        let clients = [first.unwrap(), second.unwrap()];
        let mut connected = clients.each_ref().map(|client| client.local_addr().unwrap());
        accepted.sort();
        connected.sort();
        assert_eq!(accepted, connected);
    });
}

#[test]
fn a_side_that_has_shut_down_still_reads() {
    everywhere(|| async {
        let both = devices(Policy::COMBINE);
        let (mut client, mut server) = pair(&both).await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let error = client.write(b"more").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let (mut question, mut answer) = (String::new(), String::new());
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        server.write_all(b"answer").await.unwrap();
        drop(server);
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
    });
}

/// Tasks that wait in both directions learn that the other side has closed without reading.
#[test]
fn a_reset_wakes_who_reads_and_who_writes() {
    everywhere(|| async {
        let both = devices(Policy::DACKS);
        let (client, mut server) = pair(&both).await;
        let (mut read, mut write) = client.into_split();
        let reader = tokio::spawn(async move { read.read(&mut [0; 10]).await });
        let writer = tokio::spawn(async move {
            loop {
                if let Err(error) = write.write(&[1; 50_000]).await {
                    break error.kind();
                }
            }
        });
        // More than nothing is unread, whatever has time to come before the end.
        server.read_exact(&mut [0; 10]).await.unwrap();
        server.peek(&mut [0]).await.unwrap();
        tokio::time::sleep(MOMENT).await;
        assert!(!reader.is_finished() && !writer.is_finished());
        drop(server);
        assert_eq!(reader.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(writer.await.unwrap(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn what_cannot_be_is_refused() {
    everywhere(|| async {
        let [a, b] = devices(Policy::DACKS);
        let (listener, address) = listen(&b).await;
        // Below those that a test is given, one after the other.
        let nobody = Address { port: 1, ..address.clone() };
        let error = TcpStream::connect(&a, nobody).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let stream = sovia::TcpStream::connect(&a, &address).unwrap();
        let clone = stream.try_clone().unwrap();
        assert!(TcpStream::from_std(stream).unwrap_err().to_string().contains("clones"));
        TcpStream::from_std(clone).unwrap();
        listener.accept().await.unwrap();
        let both = devices(Policy::HANDLER);
        let (listener, address) = listen(&both[1]).await;
        let (client, server) =
            tokio::join!(TcpStream::connect(&both[0], address), listener.accept());
        for error in [client.err(), server.err()] {
            assert_eq!(error.unwrap().kind(), ErrorKind::InvalidInput);
        }
    });
}

/// No device needs anything of its own to wake tasks, nor has to sleep.
#[test]
fn tasks_run_on_a_simulated_nic_and_on_one_that_only_polls() {
    let polls = || {
        let port = device::open("shm:").unwrap();
        Device::new(Nic::open_with(port, Waiting::Poll), Policy::DACKS).unwrap()
    };
    let sim = |node| open(&format!("sim:model?node={node}"), Policy::STREAM_SOCKETS);
    for both in [[polls(), polls()], [sim(0), sim(1)]] {
        runtime(2).block_on(async {
            let (mut client, server) = pair(&both).await;
            let server = tokio::spawn(answer(server));
            client.write_all(&bytes(0, 30_000)).await.unwrap();
            let mut back = vec![0; 30_000];
            timeout(SOON, client.read_exact(&mut back)).await.unwrap().unwrap();
            assert!(back == bytes(0, 30_000));
            drop(client);
            timeout(SOON, server).await.unwrap().unwrap();
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the sizes of writes and reads.
    #[test]
    fn bytes_arrive_in_order_whatever_the_sizes(
        writes in prop::collection::vec(prop_oneof![1..100_usize, 1..80_000_usize], 1..20),
        reads in prop::collection::vec(prop_oneof![1..100_usize, 1..80_000_usize], 1..20),
        policy in prop::sample::select(vec![Policy::SINGLE, Policy::DACKS, Policy::STREAM_SOCKETS]),
    ) {
        let total: usize = writes.iter().sum();
        let all = runtime(2).block_on(async {
            let both = devices(policy);
            let (mut client, mut server) = pair(&both).await;
            let writer = tokio::spawn(async move {
                let mut at = 0;
                for length in writes {
                    client.write_all(&bytes(at, length)).await.unwrap();
                    at += length;
                }
            });
            let (mut all, mut sizes) = (Vec::new(), reads.iter().cycle());
            loop {
                let mut buffer = vec![0; *sizes.next().unwrap()];
                let read = timeout(SOON, server.read(&mut buffer)).await.unwrap().unwrap();
                if read == 0 {
                    break;
                }
                all.extend_from_slice(&buffer[..read]);
            }
            writer.await.unwrap();
            all
        });
        prop_assert!(all == bytes(0, total), "{} of {} bytes", all.len(), total);
    }
}
