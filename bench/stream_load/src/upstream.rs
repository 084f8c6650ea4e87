//! The upstream: tokens at a pace, other answers after a fixed time or at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};

use crate::arguments::Arguments;
use crate::events::{Events, Stream};
use crate::{mark, request};

const LISTENER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// Room for one read, in bytes.
const READ: usize = 256 << 10;

/// Serves until the process is ended.
///
/// # Errors
/// An argument is missing, the answer cannot be read, or the address cannot be bound.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let address: SocketAddr = arguments
        .text("listen")?
        .parse()
        .map_err(|_| "--listen: not an address".to_owned())?;
    let pace = Pace {
        interval_us: arguments.number("interval-us")?,
        tokens: u32::try_from(arguments.number("tokens")?).map_err(|_| "--tokens: too many".to_owned())?,
        latency_us: arguments.number("latency-us")?,
    };
    let answers = Answers {
        completion: answer(arguments.text("completion")?)?,
        message: answer(arguments.text("message")?)?,
    };
    Upstream::bind(address, pace, answers)
        .and_then(|mut upstream| {
            println!("listening {}", upstream.listener.local_addr()?);
            let mut events = mio::Events::with_capacity(1024);
            loop {
                upstream.turn(&mut events)?;
            }
        })
        .map_err(|error: std::io::Error| format!("upstream: {error}"))
}

/// What is answered that is no stream, each with its head.
struct Answers {
    completion: Vec<u8>,
    message: Vec<u8>,
}

impl Answers {
    fn to(&self, events: Events) -> &[u8] {
        match events {
            Events::OpenAi => &self.completion,
            Events::Anthropic => &self.message,
        }
    }
}

/// The answer whose JSON is in a file.
fn answer(file: &str) -> Result<Vec<u8>, String> {
    let json = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let length = json.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    Ok([head.as_bytes(), &json].concat())
}

struct Pace {
    interval_us: u64,
    tokens: u32,
    latency_us: u64,
}

struct Connection {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Whose answers its requests get, the last one's.
    events: Events,
    /// The stream that is open.
    stream: Option<Stream>,
    busy: bool,
}

/// What is due: a token or an answer, on the connection with this number.
type Due = Reverse<(u64, usize)>;

struct Upstream {
    poll: Poll,
    listener: TcpListener,
    // The timeout of poll has whole milliseconds, a twentieth of the pace.
    timer: OwnedFd,
    pace: Pace,
    answers: Answers,
    /// Where every read goes first.
    piece: Box<[u8]>,
    // Numbers are never used twice, so a due token can never reach another connection.
    connections: std::collections::HashMap<usize, Connection>,
    next: usize,
    due: BinaryHeap<Due>,
}

impl Upstream {
    fn bind(address: SocketAddr, pace: Pace, answers: Answers) -> std::io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        poll.registry()
            .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            timer,
            pace,
            answers,
            piece: vec![0; READ].into(),
            connections: Default::default(),
            next: 0,
            due: BinaryHeap::new(),
        })
    }

    /// Waits for what comes next, then serves all that came.
    fn turn(&mut self, events: &mut mio::Events) -> std::io::Result<()> {
        self.set_timer()?;
        match self.poll.poll(events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &*events {
            match event.token() {
                LISTENER => self.accept()?,
                // What is due is sent after every turn; setting the timer anew clears it.
                TIMER => {}
                Token(number) => self.serve(number, event.is_readable()),
            }
        }
        self.send_due();
        Ok(())
    }

    /// Sets the timer to the next token or answer, if any.
    fn set_timer(&self) -> std::io::Result<()> {
        let Some(&Reverse((due, _))) = self.due.peek() else {
            return Ok(());
        };
        let at = Timespec {
            tv_sec: i64::try_from(due / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(due % 1_000_000 * 1_000).unwrap_or(0),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: at,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    fn accept(&mut self) -> std::io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((mut socket, _)) => {
                    socket.set_nodelay(true)?;
                    let number = self.next;
                    self.next += 1;
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    self.poll
                        .registry()
                        .register(&mut socket, Token(number), interest)?;
                    let connection = Connection {
                        socket,
                        input: Vec::new(),
                        output: Vec::new(),
                        events: Events::OpenAi,
                        stream: None,
                        busy: false,
                    };
                    self.connections.insert(number, connection);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn serve(&mut self, number: usize, readable: bool) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let open = (!readable || connection.fill(&mut self.piece)) && connection.flush();
        if open {
            self.begin(number);
        } else {
            self.connections.remove(&number);
        }
    }

    /// Begins to answer what has arrived on a connection that is not answering yet.
    fn begin(&mut self, number: usize) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        while !connection.busy
            && let Some(request) = request::read(&connection.input)
        {
            connection.input.drain(..request.length);
            connection.events = request.events;
            let wait = if request.stream {
                let stream = Stream::new(request.events, request.calls_tools, self.pace.tokens);
                connection.output.extend_from_slice(STREAM_HEAD);
                stream.begin(&mut connection.output);
                connection.stream = Some(stream);
                self.pace.interval_us
            } else {
                self.pace.latency_us
            };
            if wait == 0 {
                let answer = self.answers.to(request.events);
                connection.output.extend_from_slice(answer);
            } else {
                connection.busy = true;
                self.due.push(Reverse((mark::now_us() + wait, number)));
            }
        }
        if !connection.flush() {
            self.connections.remove(&number);
        }
    }

    /// Sends what is due now. The clock is read once: an upstream that is late still has to accept and read.
    fn send_due(&mut self) {
        let now = mark::now_us();
        while let Some(&Reverse((due, number))) = self.due.peek() {
            if due > now {
                return;
            }
            self.due.pop();
            let Some(connection) = self.connections.get_mut(&number) else {
                continue;
            };
            if connection.stream.is_some() {
                connection.send_token(due);
            } else {
                let answer = self.answers.to(connection.events);
                connection.output.extend_from_slice(answer);
                connection.busy = false;
            }
            let again = connection.stream.is_some();
            if !connection.flush() {
                self.connections.remove(&number);
            } else if again {
                self.due.push(Reverse((due + self.pace.interval_us, number)));
            } else {
                self.begin(number);
            }
        }
    }
}

impl Connection {
    /// Reads all there is, by way of `piece`; false when the other side has closed.
    fn fill(&mut self, piece: &mut [u8]) -> bool {
        loop {
            match self.socket.read(piece) {
                Ok(0) => return false,
                Ok(bytes) => {
                    self.input.extend_from_slice(&piece[..bytes]);
                    // epoll(7): less than was asked for is all there is; an end is told by an event of its own.
                    if bytes < piece.len() {
                        return true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Writes what there is; false when the connection is broken.
    fn flush(&mut self) -> bool {
        let mut written = 0;
        while written < self.output.len() {
            match self.socket.write(&self.output[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.output.drain(..written);
        true
    }

    fn send_token(&mut self, due: u64) {
        let Some(stream) = &mut self.stream else { return };
        let mark = mark::write(due);
        let mark = String::from_utf8_lossy(&mark);
        stream.token(&mut self.output, &format!(" {mark}"));
        if stream.is_over() {
            self.stream = None;
            self.busy = false;
        }
    }
}
