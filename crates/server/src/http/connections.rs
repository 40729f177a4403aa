//! From a listener to served connections, and their end: none is cut off while it has a request in work.
//!
//! In place of `axum::serve`, whose connections all watch one channel for the end: each looks there every
//! time that it wakes, which is one lock for all threads.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tower::{Service, ServiceExt};
use tracing::trace;

use super::threads::HttpThreads;

/// Serves whoever connects until `told_to_stop` ends. Then nobody new is let in, requests in work are
/// answered, and connections without any are closed; returns when all are. A connection stays on one of
/// `threads`; it has a service of its own, which is cloned for each of its requests: so no two threads count the same references.
pub async fn serve<S>(
    mut listener: impl Listener<Io = TcpStream, Addr = SocketAddr>,
    threads: &HttpThreads,
    make_service: impl Fn(SocketAddr) -> S,
    told_to_stop: impl Future<Output = ()>,
) where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let open = Arc::new(Open::default());
    // Every connection holds a sender: when there is none any more, all are closed.
    let (connected, mut all_closed) = mpsc::channel::<Infallible>(1);
    let mut told_to_stop = pin!(told_to_stop);
    for number in 0.. {
        let (io, address) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut told_to_stop => break,
        };
        let place = Place { number, open: open.clone() };
        let closing = open.enter(number);
        let (service, connected) = (make_service(address), connected.clone());
        // From this thread's events to that thread's.
        let io = io.into_std();
        threads.put(async move {
            let _until_closed = (place, connected);
            match io.and_then(TcpStream::from_std) {
                Ok(io) => serve_one(TokioIo::new(io), service, closing).await,
                Err(e) => trace!("a connection broke: {e:#}"),
            }
        });
    }
    drop((listener, connected));
    open.close_all();
    all_closed.recv().await;
}

async fn serve_one<I, S>(io: I, service: S, mut closing: oneshot::Receiver<Infallible>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let service = service.map_request(|request: hyper::Request<Incoming>| request.map(Body::new));
    let builder = Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(io, TowerToHyperService::new(service)));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        _ = &mut closing => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = ended {
        trace!("a connection broke: {e:#}");
    }
}

/// The connections that are open, each with what it hears of the end.
#[derive(Default)]
struct Open(Mutex<HashMap<u64, oneshot::Sender<Infallible>>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Infallible>>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// A connection comes; the receiver ends when it should.
    fn enter(&self, number: u64) -> oneshot::Receiver<Infallible> {
        let (close, closing) = oneshot::channel();
        self.lock().insert(number, close);
        closing
    }

    fn close_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        // Each sender that goes wakes its connection.
        drop(all);
    }
}

/// A connection's place among the open ones, free again when it is dropped.
struct Place {
    number: u64,
    open: Arc<Open>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;
    use tower::service_fn;

    use super::*;

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
            serve(listener, &threads, make, async move { told.notified().await }).await;
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
            serve(listener, &threads, |_| service, async { stopped.await.unwrap() }).await;
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
        // A place that is left is taken again.
        let (left, thread) = connections.swap_remove(0);
        drop(left);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut next = TcpStream::connect(address).await.unwrap();
        assert_eq!(answer_to(&mut next).await, thread);
        drop((next, connections));
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
