//! Programs that are killed in mid-call: the other end gets an error, and nobody else does.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use via_rpc::{Client, Error, Event, Server, Settings};

use crate::{SOON, connect, open};

/// What a child is given: the node of its parent, or nothing for a server.
const HOST: &str = "VIADUCT_TEST_RPC_HOST";
const ROLE: &str = "VIADUCT_TEST_RPC_ROLE";
const ROUNDS: u64 = 10;

/// Runs in a child: calls until it is killed.
#[expect(clippy::print_stdout, reason = "that is how they talk")]
#[test]
fn child_client() {
    if env::var(ROLE).as_deref() != Ok("child_client") {
        return;
    }
    let device = open("shm:");
    let mut client = connect(&device, &host(), "victim", &Settings::default()).unwrap();
    println!("@ready");
    let mut reply = Vec::new();
    for length in (1..50_000).step_by(997).cycle() {
        client.call(&vec![1; length], &mut reply, SOON).unwrap();
    }
}

/// Runs in a child: answers half of each request until it is killed.
#[expect(clippy::print_stdout, reason = "that is how they talk")]
#[test]
fn child_server() {
    if env::var(ROLE).as_deref() != Ok("child_server") {
        return;
    }
    let device = open("shm:");
    let server = Server::bind(&device, "victim", &Settings::default()).unwrap();
    let host: Vec<String> = device.host().iter().map(u8::to_string).collect();
    println!("@ready {}", host.join("."));
    let mut body = Vec::new();
    loop {
        let request = server.receive_any(&mut body, SOON).unwrap();
        let _ = request.reply(&body[body.len() / 2..]);
    }
}

fn host() -> Vec<u8> {
    parse(&env::var(HOST).unwrap())
}

fn parse(host: &str) -> Vec<u8> {
    host.trim().split('.').map(|byte| byte.parse().unwrap()).collect()
}

/// Starts a child, and waits until it is ready; what it says.
fn start(role: &str, host: &[u8]) -> (Child, String) {
    let host: Vec<String> = host.iter().map(u8::to_string).collect();
    let mut command = Command::new(env::current_exe().unwrap());
    let test = format!("killed::{role}");
    command.args([&test, "--exact", "--nocapture"]).env(HOST, host.join(".")).env(ROLE, role);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = output.find_map(|line| line.split_once("@ready").map(|(_, said)| said.to_owned()));
    (child, said.unwrap())
}

fn kill_after(mut child: Child, time: Duration) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(time);
        child.kill().unwrap();
        child.wait().unwrap();
    })
}

#[test]
fn a_client_that_is_killed_loses_its_own_connection_only() {
    let device = open("shm:");
    let other = open("shm:?node=rpc-survivor");
    let server = Server::bind(&device, "victim", &Settings::default()).unwrap();
    let mut body = Vec::new();
    thread::scope(|scope| {
        let (other, host) = (&other, device.host());
        let survivor = scope.spawn(move || {
            let mut client = connect(other, &host, "victim", &Settings::default()).unwrap();
            for round in 0..ROUNDS {
                // The child says that it is ready when the server has taken it.
                let (child, _) = start("child_client", &host);
                let killed = kill_after(child, Duration::from_micros(round * 977 % 10_000));
                killed.join().unwrap();
                client.call(b"alive?", &mut Vec::new(), SOON).unwrap();
            }
            client.call(b"end", &mut Vec::new(), SOON).unwrap();
        });
        let (mut ended, mut calls, mut is_over) = (0, 0, false);
        while !is_over || ended < ROUNDS {
            match server.next(&mut body, SOON).unwrap() {
                Event::Connected(_) => {}
                Event::Ended(_, error) => {
                    assert!(matches!(error, Error::Lost), "{error}");
                    ended += 1;
                }
                Event::Request(request) => {
                    calls += 1;
                    is_over |= body == b"end";
                    // The survivor waits for its answer; another client may be dead by now.
                    let replied = request.reply(&body);
                    assert!(matches!(replied, Ok(()) | Err(Error::Lost)), "{replied:?}");
                }
            }
        }
        assert!(calls > ROUNDS);
        survivor.join().unwrap();
    });
}

#[test]
fn a_server_that_is_killed_is_an_error_of_its_clients() {
    let device = open("shm:?node=rpc-bereaved");
    for round in 0..ROUNDS {
        let (child, host) = start("child_server", &[]);
        let mut clients: Vec<Client> = (0..2)
            .map(|_| connect(&device, &parse(&host), "victim", &Settings::default()).unwrap())
            .collect();
        let killer = kill_after(child, Duration::from_micros(round * 977 % 10_000));
        let mut reply = Vec::new();
        let error = loop {
            // Its end wakes who waits without a bound.
            match clients[0].call(&[1; 20_000], &mut reply, vipl::INFINITE) {
                Ok(()) => assert_eq!(reply.len(), 10_000),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Lost), "{error}");
        let error = clients[1].call(b"x", &mut reply, vipl::INFINITE).unwrap_err();
        assert!(matches!(error, Error::Lost), "{error}");
        killer.join().unwrap();
    }
}
