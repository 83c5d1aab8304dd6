//! Outputs of sockperf 3.7, UCX 1.13.1 and libfabric 1.17.0.

use super::*;

const SOCKPERF: &str = "\
sockperf: == version #3.7-no.git == 
sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)

[ 0] IP = 127.0.0.1       PORT = 11711 # TCP
sockperf: Test ended
sockperf: [Valid Duration] RunTime=0.548 sec; SentMessages=6937; ReceivedMessages=6937
sockperf: ====> avg-latency=39.489 (std-dev=174.626)
sockperf: Summary: Latency is 39.489 usec
sockperf: Total 6937 observations; each percentile contains 69.37 observations
sockperf: ---> percentile 99.900 = 1981.545
sockperf: ---> percentile 99.000 = 1100.658
sockperf: ---> percentile 90.000 =   20.831
";

const SOCKPERF_STREAM: &str = "\
sockperf: Total of 290799 messages sent in 1.003 sec

sockperf: Summary: Message Rate is 289906 [msg/sec], Packet Rate is about 869718 [pkt/sec] (3 ip frags / msg)
sockperf: Summary: BandWidth is 1132.445 MBps (9059.562 Mbps)
";

const UCX: &str = "\
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
2000,0.122,0.112,0.113,543.81,543.81,8909833,8909834
";

const LIBFABRIC: &str = "\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      10k     =10k     1.2m        0.05s     25.84       2.48       0.40
";

fn found(value: f64, p99: Option<f64>) -> Option<Found> {
    Some(Found { value, p99 })
}

#[test]
fn the_value_of_each_program_is_found_in_its_output() {
    let (latency, bandwidth) = (Task::Latency, Task::Bandwidth);
    assert_eq!(Program::Sockperf.parse(latency, SOCKPERF), found(39.489, Some(1100.658)));
    assert_eq!(Program::Sockperf.parse(bandwidth, SOCKPERF_STREAM), found(289_906.0, None));
    assert_eq!(Program::Ucx.parse(latency, UCX), found(0.113, None));
    assert_eq!(Program::Ucx.parse(bandwidth, UCX), found(8_909_834.0, None));
    assert_eq!(Program::Libfabric.parse(latency, LIBFABRIC), found(2.48, None));
}

#[test]
fn output_without_a_result_has_no_value() {
    let refused = "sockperf: ERROR: Can`t connect socket (errno=111 Connection refused)\n";
    let names = [UCX, LIBFABRIC].map(|text| text.lines().next().unwrap_or_default());
    for output in [refused, "", "Summary: Latency is", names[0], names[1]] {
        for program in [Program::Sockperf, Program::Ucx, Program::Libfabric] {
            for task in [Task::Latency, Task::Bandwidth] {
                assert_eq!(program.parse(task, output), None, "{program:?}: {output}");
            }
        }
    }
}

#[test]
fn a_program_is_asked_only_for_what_it_measures() {
    let names = |task, size| -> Vec<String> {
        let all = ALL.into_iter().filter(|transport| transport.carries(task, size));
        all.map(|transport| format!("{} {}", transport.program.name(), transport.by)).collect()
    };
    assert_eq!(names(Task::Latency, 0), ["ucx shm", "ucx tcp", "libfabric shm"]);
    assert_eq!(names(Task::Latency, 64).len(), ALL.len());
    assert_eq!(names(Task::Bandwidth, 64), ["sockperf tcp", "ucx shm", "ucx tcp"]);
    assert_eq!(names(Task::Bandwidth, 65_536), ["ucx shm", "ucx tcp"]);
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", text]);
    command
}

#[test]
fn what_a_client_has_written_is_read_and_a_client_that_fails_is_no_error() {
    assert_eq!(client(shell("echo one; echo two"), CLIENT_BOUND).expect("it ends"), "one\ntwo\n");
    assert_eq!(client(shell("exit 3"), CLIENT_BOUND).expect("it ends"), "");
}

#[test]
fn a_client_that_does_not_end_is_ended() {
    let start = Instant::now();
    let why = client(shell("exec sleep 60"), Duration::from_millis(100)).expect_err("no end");
    assert_eq!(why.to_string(), "no end within 100ms");
    assert!(start.elapsed() < Duration::from_secs(30));
}
