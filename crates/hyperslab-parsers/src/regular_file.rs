//! The one rule for local files that are read: regular files on a disk, and nothing else.
//!
//! Files name other files, and may name anything. A pipe would keep us waiting for its other end, a device may do
//! something when it is opened, and a file of the kernel holds secrets of the machine under a made-up size.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Opens a regular file for reading, without ever waiting. The error's message is complete but for the file's name.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(refused("it is not a regular file")); // opening a device may have effects
    }
    let file = without_waiting(path)?;
    check_regular(&file)?;
    Ok(file)
}

/// Refuses an open file that is not a regular one.
pub fn check_regular(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if is_of_kernel(file) {
        return Err(refused("it is a file of the kernel, not a regular file"));
    }
    Ok(metadata)
}

fn refused(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

/// If a pipe replaces the file meanwhile, opening returns at once and the pipe is refused.
#[cfg(target_os = "linux")]
fn without_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(target_os = "linux"))]
fn without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// File systems whose files the kernel makes up while they are read, by their numbers in linux/magic.h.
#[cfg(target_os = "linux")]
const OF_KERNEL: [u32; 18] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x5a3c_69f0, // apparmorfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xcafe_4a11, // bpf
    0x6e73_6673, // nsfs
    0x4249_4e4d, // binfmt_misc
    0x0765_5821, // resctrl
    0x6573_5543, // fusectl
];

#[cfg(target_os = "linux")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the number's width and sign depend on the processor
fn is_of_kernel(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| OF_KERNEL.contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_of_kernel(_: &File) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::open_regular;

    #[test]
    fn files_of_the_kernel_and_devices_are_refused() {
        for name in ["/proc/self/environ", "/proc/version", "/sys/kernel/uevent_seqnum", "/dev/null", "/"] {
            if Path::new(name).exists() {
                assert!(
                    open_regular(Path::new(name)).unwrap_err().to_string().contains("not a regular file"),
                    "{name}"
                );
            }
        }
        open_regular(&std::env::current_exe().unwrap()).unwrap();
    }
}
