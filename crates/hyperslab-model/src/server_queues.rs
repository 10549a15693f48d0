//! A discrete-event simulation of processes that wait for servers, each of which serves requests in order of arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::ModelError;

/// The requests of all processes, one process after the other.
#[derive(Clone, Copy, Debug)]
pub struct ServerRequests<'a> {
    /// Where the requests of each process begin, and at last where those of the last process end.
    pub starts: &'a [u64],
    /// The server of each request.
    pub servers: &'a [u32],
    /// How long each request occupies its server.
    pub service_seconds: &'a [f64],
    /// How long its process is busy with each request without occupying a server: the network, and copies.
    pub process_seconds: &'a [f64],
}

/// When each process ends, and how long each server was busy.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedRequests {
    /// When each process has its last answer.
    pub end_seconds: Vec<f64>,
    /// How long each server served requests.
    pub busy_seconds: Vec<f64>,
}

/// A moment at which a process makes its next request. Times are never negative, so their bits have their order.
type Arrival = Reverse<(u64, u32)>;

impl ServerRequests<'_> {
    /// Serves all requests. A process makes its next request once it has the answer to the last one.
    ///
    /// # Errors
    /// The columns have different lengths, a server does not exist, or a time is negative or not finite.
    pub fn serve(&self, server_count: u32) -> Result<ServedRequests, ModelError> {
        self.check(server_count)?;
        let process_count = self.starts.len() - 1;
        let mut next: Vec<u64> = self.starts[..process_count].to_vec();
        let mut end_seconds = vec![0.0; process_count];
        let mut free_seconds = vec![0.0_f64; server_count as usize];
        let mut busy_seconds = vec![0.0; server_count as usize];
        let mut arrivals: BinaryHeap<Arrival> = (0..process_count)
            .filter(|&process| self.starts[process] < self.starts[process + 1])
            .map(|process| Reverse((0, u32::try_from(process).unwrap_or(u32::MAX))))
            .collect();
        while let Some(Reverse((bits, process))) = arrivals.pop() {
            let place = process as usize;
            let request = usize::try_from(next[place]).unwrap_or(usize::MAX);
            let server = self.servers[request] as usize;
            let begun = f64::from_bits(bits).max(free_seconds[server]);
            free_seconds[server] = begun + self.service_seconds[request];
            busy_seconds[server] += self.service_seconds[request];
            let answered = free_seconds[server] + self.process_seconds[request];
            next[place] += 1;
            if next[place] < self.starts[place + 1] {
                arrivals.push(Reverse((answered.to_bits(), process)));
            } else {
                end_seconds[place] = answered;
            }
        }
        Ok(ServedRequests { end_seconds, busy_seconds })
    }

    fn check(&self, server_count: u32) -> Result<(), ModelError> {
        let count = self.servers.len();
        let wrong = |what: &str| Err(ModelError::Requests(what.to_owned()));
        if self.service_seconds.len() != count || self.process_seconds.len() != count {
            return wrong("the columns of requests have different lengths");
        }
        let ends =
            self.starts.first().copied() == Some(0) && self.starts.last().copied() == Some(count as u64);
        if !ends || self.starts.windows(2).any(|pair| pair[0] > pair[1]) {
            return wrong("the starts of processes must ascend, from 0 to the number of requests");
        }
        if u32::try_from(self.starts.len()).is_err() {
            return wrong("there are too many processes");
        }
        if self.servers.iter().any(|&server| server >= server_count) {
            return wrong("a request goes to a server that does not exist");
        }
        let times = self.service_seconds.iter().chain(self.process_seconds);
        if times.into_iter().any(|seconds| !seconds.is_finite() || seconds.is_sign_negative()) {
            return wrong("a time is negative or not finite");
        }
        Ok(())
    }
}
