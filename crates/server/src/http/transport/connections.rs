//! Accepts connections, serves them and closes them. None is cut off while it has a request in
//! progress.
//!
//! Replaces `axum::serve`, whose connections all watch one channel for the shutdown. Each
//! connection checks that channel every time it wakes, which takes a lock that all threads share.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use axum::extract::Request;
use axum::http::Version;
use axum::response::Response;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tower::Service;
use tracing::{debug, trace};

use super::activity::{Activity, RecordingIo, RequestGuard, Waiting};
use super::sending::watched;
use super::timeouts::Watch;
use super::{HttpThreads, Transport, drain};

/// Serves connections until `told_to_stop` ends. Then it accepts no more, answers the requests in
/// progress, closes idle connections, and returns when all are closed. A connection stays on one of
/// `threads`. It has its own service, which is always ready and is cloned for each of its requests,
/// so that no two threads use the same reference count. While the maximum number of connections of
/// `transport` is reached, others wait in the system's queue.
pub(crate) async fn serve<S>(
    mut listener: impl Listener<Io = TcpStream, Addr = SocketAddr>,
    threads: &HttpThreads,
    transport: &Arc<Transport>,
    make_service: impl Fn(SocketAddr) -> S,
    told_to_stop: impl Future<Output = ()>,
) where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let open = Arc::new(Open::default());
    // Every connection holds a sender. When all senders are dropped, all connections are closed.
    let (connected, mut all_closed) = mpsc::channel::<Infallible>(1);
    let mut told_to_stop = pin!(told_to_stop);
    let room = Arc::new(Semaphore::new(transport.max_connections.min(Semaphore::MAX_PERMITS)));
    for number in 0.. {
        let accept = async {
            let room = room.clone().acquire_owned().await.expect("it is never closed");
            (listener.accept().await, room)
        };
        let ((io, address), room) = tokio::select! {
            accepted = accept => accepted,
            () = &mut told_to_stop => break,
        };
        let entry = OpenConnection { number, open: open.clone() };
        let closing = open.enter(number);
        let (service, connected) = (make_service(address), connected.clone());
        let transport = transport.clone();
        // Moves the socket from this thread's event loop to the other thread's.
        let io = io.into_std();
        threads.put(async move {
            let _until_closed = (entry, connected, room);
            match io.and_then(TcpStream::from_std) {
                Ok(io) => serve_one(io, &transport, service, closing).await,
                Err(e) => trace!("a connection failed: {e:#}"),
            }
        });
    }
    drop((listener, connected));
    open.close_all();
    all_closed.recv().await;
}

/// Serves one connection: its handshake, if there is TLS, and its requests.
async fn serve_one<S>(
    io: TcpStream,
    transport: &Transport,
    service: S,
    mut closing: oneshot::Receiver<Infallible>,
) where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let activity = Activity::new();
    let mut watch = Watch::new(activity.clone(), transport.timeouts);
    let io = RecordingIo::new(io, activity.clone());
    // One type for both: everything behind it is compiled once.
    let io = match transport.tls.as_ref().map(|tls| tls.config()) {
        None => Either::Left(io),
        Some(tls) => {
            let handshake = tokio::select! {
                handshake = watch.until(TlsAcceptor::from(tls).accept(io)) => handshake,
                _ = &mut closing => return,
            };
            match handshake {
                Ok(Ok(io)) => Either::Right(Box::new(io)),
                Ok(Err(e)) => return debug!("a TLS handshake failed: {e}"),
                Err(waiting) => return log_timeout(waiting),
            }
        }
    };
    serve_requests(io, transport, service, activity, watch, closing).await;
}

async fn serve_requests<S>(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    transport: &Transport,
    service: S,
    activity: Arc<Activity>,
    mut watch: Watch,
    mut closing: oneshot::Receiver<Infallible>,
) where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let version = request.version();
        let in_work = activity.begin(version);
        let watched_by = (version == Version::HTTP_2).then(|| activity.clone());
        let (head, body) = request.into_parts();
        let body = drain::drained(head.version, &head.headers, body, &activity);
        let answer = service.clone().call(Request::from_parts(head, body));
        Working { answer, in_work, watched_by }
    });
    let mut connection = pin!(transport.protocols.serve_connection(TokioIo::new(io), service));
    let mut is_closing = false;
    poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                if let Err(e) = ended {
                    trace!("a connection failed: {e:#}");
                }
                return Poll::Ready(());
            }
            if is_closing || Pin::new(&mut closing).poll(context).is_pending() {
                match watch.poll_expired(context) {
                    Poll::Pending => return Poll::Pending,
                    // An idle HTTP/2 client is sent a GOAWAY and gets the same time again, so that
                    // a request in flight is not lost.
                    Poll::Ready(Waiting::Request) if !is_closing => watch.restart(),
                    Poll::Ready(waiting) => {
                        log_timeout(waiting);
                        return Poll::Ready(());
                    }
                }
            }
            is_closing = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await;
}

pin_project! {
    /// The future of a request's answer, and its mark as a request in progress. (An async block
    /// would hold the answer's future twice, and it is large.)
    struct Working<F> {
        #[pin]
        answer: F,
        in_work: RequestGuard,
        // `None` for HTTP/1.1.
        watched_by: Option<Arc<Activity>>,
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Working<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(context));
        Poll::Ready(match this.watched_by {
            None => answer,
            Some(activity) => answer.map(|answer| watched(answer, activity)),
        })
    }
}

fn log_timeout(waiting: Waiting) {
    debug!(
        "closed a connection: {}",
        match waiting {
            Waiting::Head => "no complete request arrived in time (header_read_timeout_ms)",
            Waiting::Reader => "the client did not read its answer (write_timeout_ms)",
            Waiting::Request =>
                "it was idle and the client did not close it in time (idle_timeout_ms)",
            Waiting::Handler => unreachable!("a handler has bounds of its own"),
        }
    );
}

/// The open connections, each with a sender that closes it when dropped.
#[derive(Default)]
struct Open(Mutex<HashMap<u64, oneshot::Sender<Infallible>>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Infallible>>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// Adds a connection. The receiver ends when the connection should close.
    fn enter(&self, number: u64) -> oneshot::Receiver<Infallible> {
        let (close, closing) = oneshot::channel();
        self.lock().insert(number, close);
        closing
    }

    fn close_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        // Each dropped sender wakes its connection.
        drop(all);
    }
}

/// Keeps a connection among the open ones until this is dropped.
struct OpenConnection {
    number: u64,
    open: Arc<Open>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;
    use tower::service_fn;

    use super::*;
    use crate::config::Config;

    fn transport(max_connections: usize) -> Arc<Transport> {
        Transport::new(&Config { max_connections, ..Config::defaults() }).unwrap()
    }

    async fn ask(stream: &mut TcpStream, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
    }

    #[tokio::test]
    async fn requests_in_work_are_answered_and_idle_connections_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (go, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (held, told) = (go.clone(), stop.clone());
        let service = service_fn(move |request: Request| {
            let held = held.clone();
            async move {
                if request.uri().path() == "/held" {
                    held.notified().await;
                }
                Ok(Response::new(Body::from("done")))
            }
        });
        let make = move |_| service.clone();
        let server = tokio::spawn(async move {
            let threads = HttpThreads::start(2).unwrap();
            serve(listener, &threads, &transport(10), make, async move { told.notified().await })
                .await;
        });

        let mut idle = TcpStream::connect(address).await.unwrap();
        let mut answer = [0; 1024];
        ask(&mut idle, "/").await;
        assert!(idle.read(&mut answer).await.unwrap() > 0);
        let mut busy = TcpStream::connect(address).await.unwrap();
        ask(&mut busy, "/held").await;
        tokio::time::sleep(Duration::from_millis(50)).await;

        stop.notify_one();
        assert_eq!(idle.read(&mut answer).await.unwrap(), 0, "closed");
        assert!(TcpStream::connect(address).await.is_err(), "nobody new");
        assert!(!server.is_finished(), "a request is in work");
        go.notify_one();
        let mut text = String::new();
        busy.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("done"), "{text}");
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_stays_on_its_thread_and_threads_get_as_many_each() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = service_fn(|_: Request| async {
            Ok(Response::new(Body::from(format!("{:?}", std::thread::current().id()))))
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let threads = HttpThreads::start(3).unwrap();
            serve(listener, &threads, &transport(10), |_| service, async {
                stopped.await.unwrap();
            })
            .await;
        });
        let mut connections = Vec::new();
        let mut on_thread: HashMap<String, usize> = HashMap::new();
        for _ in 0..6 {
            let mut connection = TcpStream::connect(address).await.unwrap();
            let thread = answer_to(&mut connection).await;
            *on_thread.entry(thread.clone()).or_default() += 1;
            connections.push((connection, thread));
        }
        assert_eq!(on_thread.values().collect::<Vec<_>>(), [&2; 3], "{on_thread:?}");
        for (connection, thread) in &mut connections {
            for _ in 0..20 {
                assert_eq!(answer_to(connection).await, *thread);
            }
        }
        // The next connection takes the place of one that has closed.
        let (left, thread) = connections.swap_remove(0);
        drop(left);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut next = TcpStream::connect(address).await.unwrap();
        assert_eq!(answer_to(&mut next).await, thread);
        drop((next, connections));
        stop.send(()).unwrap();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn beyond_the_cap_a_connection_waits_until_another_closes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = service_fn(|_: Request| async { Ok(Response::new(Body::from("done"))) });
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let threads = HttpThreads::start(1).unwrap();
            serve(listener, &threads, &transport(2), |_| service, async { stopped.await.unwrap() })
                .await;
        });
        let mut first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        for connection in [&mut first, &mut second] {
            assert_eq!(answer_to(connection).await, "done");
        }
        let mut third = TcpStream::connect(address).await.unwrap();
        let third = tokio::spawn(async move { answer_to(&mut third).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!third.is_finished(), "there is no room");
        assert_eq!(answer_to(&mut first).await, "done", "the others go on");
        drop(second);
        assert_eq!(third.await.unwrap(), "done");
        drop(first);
        stop.send(()).unwrap();
        server.await.unwrap();
    }

    async fn answer_to(connection: &mut TcpStream) -> String {
        ask(connection, "/").await;
        let mut answer = [0; 1024];
        let length = connection.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).rsplit("\r\n").next().unwrap().to_owned()
    }
}
