//! Reads otj with the standard library. Put the implementation that you want to test in its place.

use crate::json::{base64, integer};
use crate::No;

fn refused<T>(reason: String) -> Result<T, No> {
    Err(No::Refused(reason))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64)
}

/// Whether the last eight bytes are the 64-bit FNV-1a hash of those before them.
fn is_sound(part: &[u8]) -> bool {
    let (data, stored) = part.split_at(part.len() - 8);
    let step = |state: u64, &byte: &u8| (state ^ byte as u64).wrapping_mul(0x100000001b3);
    data.iter().fold(0xcbf29ce484222325, step) == number(stored)
}

/// The reply to a read request for otj: what stands under `ok`, as JSON text.
pub fn read(path: &str) -> Result<String, No> {
    let data = std::fs::read(path).map_err(|error| No::Error(error.to_string()))?;
    if data.len() < 24 || !data.starts_with(b"ORRERYTJ") {
        return refused("not an otj file, or one that ends in its first fields".into());
    }
    let (version, flags, claimed) = (number(&data[8..12]), number(&data[12..16]), number(&data[16..24]));
    if version != 1 {
        return refused(format!("version {version} is not known"));
    }
    if flags & !3 != 0 {
        return refused(format!("flags {flags:#010x} set a reserved bit"));
    }
    let (single, velocities) = (flags & 1 != 0, flags & 2 != 0);
    let scalar: usize = if single { 4 } else { 8 };
    if data.len() < 32 + scalar || claimed > ((data.len() - 32 - scalar) / scalar) as u64 {
        return refused(format!("the header of {claimed} particles does not fit into {} bytes", data.len()));
    }
    let particles = claimed as usize;
    let names = &["x", "y", "z", "vx", "vy", "vz"][..if velocities { 6 } else { 3 }];
    let array = particles * scalar;
    let (header, frame) = (32 + scalar + array, 16 + scalar + names.len() * array);
    if !is_sound(&data[..header]) {
        return refused("the checksum of the header is wrong".into());
    }

    // The bytes as they stand in the file.
    let dtype = if single { "f32" } else { "f64" };
    let exact = |bytes: &[u8], shape: &str| {
        format!(r#"{{"dtype":"{dtype}","shape":[{shape}],"data":"{}"}}"#, base64(bytes))
    };
    let shape = particles.to_string();
    let mut frames = Vec::new();
    for bytes in data[header..].chunks_exact(frame) {
        if !is_sound(bytes) {
            break; // the frames before a damaged one are handed back
        }
        let first = 8 + scalar;
        let mut text = format!(r#"{{"step":{},"time":{}"#, integer(number(&bytes[..8]).into()), exact(&bytes[8..first], ""));
        for (i, name) in names.iter().enumerate() {
            let values = &bytes[first + i * array..first + (i + 1) * array];
            text += &format!(r#","{name}":{}"#, exact(values, &shape));
        }
        frames.push(text + "}");
    }
    let precision = if single { "single" } else { "double" };
    Ok(format!(
        r#"{{"format":"otj","particles":{particles},"precision":"{precision}","velocities":{velocities},"timestep":{},"masses":{},"frames":[{}]}}"#,
        exact(&data[24..24 + scalar], ""),
        exact(&data[24 + scalar..header - 8], &shape),
        frames.join(",")
    ))
}
