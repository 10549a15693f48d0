//! A call as it arrives here, and the instructions by which it is made again with the same arguments, those on the stack
//! included: Rust has no other way. The tables for unwinding are right at each instruction, so exceptions and the end of a
//! thread pass through.

#![allow(unsafe_code)]

use hyperslab_libhdf5::Real;

/// How many words of the stack are passed on at most where a function is called and not jumped to: the arguments behind those
/// in registers. The longest function has 7 there.
pub(crate) const MOST_WORDS: usize = 16;

/// A call, as the instructions below put it on the stack.
#[repr(C, align(16))]
pub(crate) struct Frame {
    vectors: [[u64; 2]; 8],
    /// The address of the stub, or the number of the entry.
    pub entry: usize,
    /// On x86-64, the number of vectors among variable arguments; on ARM64, where to put a large result. Then the result.
    pub result: usize,
    _second_result: usize,
    /// The call itself.
    pub called: Called,
}

/// The call itself.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
pub(crate) struct Called {
    /// The address that the call returns to; in the uppermost byte, the number of the library that it means.
    pub caller: usize,
    sixth: usize,
    fifth: usize,
    fourth: usize,
    third: usize,
    /// The second argument.
    pub second: usize,
    /// The first argument.
    pub first: usize,
    _frame_pointer: usize,
    _returns_to: usize,
    stack: [usize; MOST_WORDS],
}

/// The call itself.
#[cfg(not(target_arch = "x86_64"))]
#[repr(C)]
pub(crate) struct Called {
    /// The address that the call returns to; in the uppermost byte, the number of the library that it means.
    pub caller: usize,
    _eighth: usize,
    seventh: usize,
    sixth: usize,
    fifth: usize,
    fourth: usize,
    third: usize,
    /// The second argument.
    pub second: usize,
    /// The first argument.
    pub first: usize,
    _frame_pointer: usize,
    _returns_to: usize,
    stack: [usize; MOST_WORDS],
}

/// The first six arguments.
pub(crate) type Arguments = (usize, usize, usize, usize, usize, usize);

impl Called {
    /// The first six arguments.
    pub fn arguments(&self) -> Arguments {
        (self.first, self.second, self.third, self.fourth, self.fifth, self.sixth)
    }

    /// The seventh argument, of functions that have so many.
    pub fn seventh(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        return self.stack[0];
        #[cfg(not(target_arch = "x86_64"))]
        self.seventh
    }

    /// Where on the stack the other arguments are.
    pub fn stack(&self) -> usize {
        (&raw const self.stack) as usize
    }
}

/// How a call goes on.
#[repr(C)]
pub(crate) struct Next {
    /// Where to jump; 0 if the call is done.
    pub jump: usize,
    /// What it returns then.
    pub result: usize,
}

impl Next {
    /// The function does the call as if nobody had been here.
    pub fn jump(function: Real) -> Self {
        Self { jump: function as usize, result: 0 }
    }

    /// The call is done.
    pub fn done(result: usize) -> Self {
        Self { jump: 0, result }
    }
}

/// What is done with a call.
/// It is told where the function is, or 0 if it has to find that out.
pub(crate) type Act = unsafe extern "C-unwind" fn(&Called, usize) -> Next;

/// Where the number of the library that a call means is in `Called::caller`.
pub(crate) const LIBRARY_SHIFT: u32 = 56;
/// Calls a function with the arguments in a frame, and so many words of the stack. Its results replace them.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn call(_frame: *mut Frame, _function: usize, _words: usize) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rbx",
        ".cfi_offset rbx, -24",
        "sub rsp, 136",
        "mov rbx, rdi",
        "mov r11, rsi",
        "cmp rdx, 16",
        "jne 3f",
        "movups xmm0, [rbx + 224]",
        "movups xmm1, [rbx + 240]",
        "movups xmm2, [rbx + 256]",
        "movups xmm3, [rbx + 272]",
        "movups xmm4, [rbx + 288]",
        "movups xmm5, [rbx + 304]",
        "movups xmm6, [rbx + 320]",
        "movups xmm7, [rbx + 336]",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "2:",
        "movaps xmm0, [rbx]",
        "movaps xmm1, [rbx + 16]",
        "movaps xmm2, [rbx + 32]",
        "movaps xmm3, [rbx + 48]",
        "movaps xmm4, [rbx + 64]",
        "movaps xmm5, [rbx + 80]",
        "movaps xmm6, [rbx + 96]",
        "movaps xmm7, [rbx + 112]",
        "mov rax, [rbx + 136]",
        "mov r9, [rbx + 160]",
        "mov r8, [rbx + 168]",
        "mov rcx, [rbx + 176]",
        "mov rdx, [rbx + 184]",
        "mov rsi, [rbx + 192]",
        "mov rdi, [rbx + 200]",
        "call r11",
        "mov [rbx + 136], rax",
        "mov [rbx + 144], rdx",
        "movaps [rbx], xmm0",
        "movaps [rbx + 16], xmm1",
        "mov rbx, [rbp - 8]",
        "leave",
        ".cfi_remember_state",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_restore_state",
        "3:", // fewer words
        "test rdx, rdx",
        "je 2b",
        "mov rax, [rbx + 8 * rdx + 216]",
        "mov [rsp + 8 * rdx - 8], rax",
        "dec rdx",
        "jmp 3b",
        ".cfi_endproc",
    )
}

/// Calls a function with the arguments in a frame, and so many words of the stack. Its results replace them.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn call(_frame: *mut Frame, _function: usize, _words: usize) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "str x19, [sp, #16]",
        ".cfi_offset x19, -16",
        "mov x29, sp",
        ".cfi_def_cfa x29, 32",
        "sub sp, sp, #128",
        "mov x19, x0",
        "mov x16, x1",
        "add x9, x19, #240",
        "mov x10, #0",
        "2:",
        "cmp x10, x2",
        "b.eq 3f",
        "ldr x11, [x9, x10, lsl #3]",
        "str x11, [sp, x10, lsl #3]",
        "add x10, x10, #1",
        "b 2b",
        "3:",
        "ldp q0, q1, [x19]",
        "ldp q2, q3, [x19, #32]",
        "ldp q4, q5, [x19, #64]",
        "ldp q6, q7, [x19, #96]",
        "ldr x8, [x19, #136]",
        "ldr x7, [x19, #160]",
        "ldp x6, x5, [x19, #168]",
        "ldp x4, x3, [x19, #184]",
        "ldp x2, x1, [x19, #200]",
        "ldr x0, [x19, #216]",
        "blr x16",
        "stp x0, x1, [x19, #136]",
        "stp q0, q1, [x19]",
        "stp q2, q3, [x19, #32]",
        "mov sp, x29",
        "ldr x19, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_restore x19",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_endproc",
    )
}
