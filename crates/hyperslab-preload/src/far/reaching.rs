//! How a URL is reached: its credentials and limits, as `hyperslab.open` finds them. Python knows the rules; where nothing but
//! the environment can matter, nobody has to ask it.

#![allow(unsafe_code)]

use std::env;
use std::ffi::{CStr, CString, OsString, c_char};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyperslab_engine::{RemoteOptions, URL_SCHEMES};

use super::failure::Failure;
use crate::settings::{is_serving, settings};
use crate::signals::Blocked;

/// What Python answers at most.
const MOST_NBYTES: usize = 1 << 20;

/// Asks Python in this process. It is given a URL and room for an answer, and returns the answer's length.
type Ask = unsafe extern "C" fn(*const c_char, *mut u8, usize) -> isize;

static ASK: AtomicUsize = AtomicUsize::new(0);

/// `hyperslab.accelerate` says whom to ask; null for nobody.
///
/// # Safety
/// The function must stay callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_ask(ask: *const ()) {
    ASK.store(ask as usize, Ordering::Release);
}

/// The URL that a name is, if we open such names now; `None` for all others.
pub(super) fn url(name: &[u8]) -> Option<&str> {
    let end = name.iter().position(|&byte| byte == b':')?;
    let opens = || settings().urls && (is_serving() || settings().trace_folder.is_some());
    if !name[end..].starts_with(b"://") || !opens() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    URL_SCHEMES.iter().any(|scheme| name[..end].eq_ignore_ascii_case(scheme)).then_some(name)
}

/// The URL to ask for, and how.
pub(super) fn reached(url: &str) -> Result<(String, RemoteOptions), Failure> {
    let said = match ASK.load(Ordering::Acquire) {
        0 if is_plain(url) => return Ok((lowered(url), RemoteOptions::default())),
        0 => said_by_command(url)?,
        // SAFETY: it is the function that was given.
        ask => said_here(unsafe { std::mem::transmute::<usize, Ask>(ask) }, url)?,
    };
    answer(&said)
}

/// The URL with its scheme in small letters.
fn lowered(url: &str) -> String {
    let end = url.find(':').unwrap_or(0);
    format!("{}{}", url[..end].to_ascii_lowercase(), &url[end..])
}

/// Whether only the environment says how the URL is reached.
fn is_plain(url: &str) -> bool {
    let home = env::var_os("HOME").map(PathBuf::from);
    let has = |name: &str| home.as_ref().is_none_or(|home| home.join(name).exists());
    let is_named = |prefix: &str| env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with(prefix));
    let server = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    let is_s3 = url.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("s3"));
    let has_profile = || has(".aws") || is_named("AWS_PROFILE") || is_named("AWS_DEFAULT_PROFILE");
    let has_files = || is_named("AWS_SHARED_CREDENTIALS_FILE") || is_named("AWS_CONFIG_FILE");
    !(server.contains('@') || is_named("FSSPEC_") || has(".config/fsspec"))
        && !(is_s3 && (has_profile() || has_files()))
}

fn said_here(ask: Ask, url: &str) -> Result<Vec<u8>, Failure> {
    let url = CString::new(url).map_err(|_| Failure::refused("a URL has no zeros".to_owned()))?;
    let mut room = vec![0; MOST_NBYTES];
    // SAFETY: the function of Python takes these.
    let nbytes = unsafe { ask(url.as_ptr(), room.as_mut_ptr(), room.len()) };
    room.truncate(usize::try_from(nbytes).unwrap_or(0));
    Ok(room)
}

/// Asks the Python that `hyperslab run` is of. The URL, which may have a password, is not among its arguments.
fn said_by_command(url: &str) -> Result<Vec<u8>, Failure> {
    let failed = |problem: String| Failure {
        number: libc::EIO,
        text: format!("the credentials of a URL could not be looked up: {problem}"),
    };
    let python = env::var_os("HYPERSLAB_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let _blocked = Blocked::new();
    let mut command = Command::new(python);
    command.args(["-m", "hyperslab.running.reaching"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env_remove("LD_PRELOAD").env_remove("HYPERSLAB_RUN_FOLDER").env_remove("HYPERSLAB_TRACE_FOLDER");
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut asked) = child.stdin.take() {
        asked.write_all(url.as_bytes()).map_err(|error| failed(error.to_string()))?;
    }
    let done = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if done.status.success() { Ok(done.stdout) } else { Err(failed(done.status.to_string())) }
}

/// What Python has said: texts that end with zeros. Either `error` and what is wrong; or `url`, the URL, four limits, how many
/// requests may be in flight (0 for any number); the number of settings of the store, each with its value; and the headers.
fn answer(said: &[u8]) -> Result<(String, RemoteOptions), Failure> {
    let wrong = || Failure::refused("the credentials of a URL could not be looked up".to_owned());
    let mut rest = said;
    let mut next = || -> Option<String> {
        let text = CStr::from_bytes_until_nul(rest).ok()?;
        rest = &rest[text.count_bytes() + 1..];
        text.to_str().ok().map(str::to_owned)
    };
    let mut read = || -> Option<Result<(String, RemoteOptions), Failure>> {
        if next()? == "error" {
            return Some(Err(Failure::refused(next()?)));
        }
        let url = next()?;
        let seconds = |text: String| Duration::try_from_secs_f64(text.parse().ok()?).ok();
        let options = RemoteOptions {
            connect_timeout: seconds(next()?)?,
            timeout: seconds(next()?)?,
            patience: seconds(next()?)?,
            most_attempts: next()?.parse().ok()?,
            most_in_flight: next()?.parse().ok().filter(|&most| most > 0),
            ..RemoteOptions::default()
        };
        let config_count: usize = next()?.parse().ok()?;
        let config = (0..config_count).map(|_| Some((next()?, next()?))).collect::<Option<Vec<_>>>()?;
        let header_count: usize = next()?.parse().ok()?;
        let headers = (0..header_count).map(|_| Some((next()?, next()?))).collect::<Option<Vec<_>>>()?;
        Some(Ok((url, RemoteOptions { config, headers, ..options })))
    };
    read().unwrap_or_else(|| Err(wrong()))
}
