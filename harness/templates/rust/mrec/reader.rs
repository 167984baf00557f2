//! Reads the step numbers and times of an mrec trajectory, as far as attributes give them, with the standard library.
//! What it does not read yet it calls unsupported. Put the implementation that you want to test in its place.

use crate::json::{self, base64, integer, Json};
use crate::No;
use std::path::Path;

fn refused<T>(reason: &str) -> Result<T, No> {
    Err(No::Refused(reason.into()))
}

fn unsupported<T>(what: &str) -> Result<T, No> {
    Err(No::Unsupported(what.into()))
}

/// The metadata of a Zarr group; None where there is no node.
fn group(folder: &Path) -> Result<Option<Json>, No> {
    let path = folder.join("zarr.json");
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(|error| No::Error(error.to_string()))?;
    let document = json::parse(&bytes).map_err(|problem| No::Refused(format!("zarr.json is not JSON: {problem}")))?;
    let version = document.get("zarr_format").and_then(Json::integer);
    if version != Some(3) || document.get("node_type").and_then(Json::text) != Some("group") {
        return refused("not a Zarr V3 group");
    }
    Ok(Some(document))
}

/// start and stride of a progression; None where there is none.
fn progression<T: Copy>(
    attributes: Option<&Json>,
    name: &str,
    nstep: i128,
    value: fn(&Json) -> Option<T>,
    zero: T,
) -> Result<Option<(T, T)>, No> {
    let Some(given) = attributes.and_then(|found| found.get(name)) else {
        return Ok(None);
    };
    let Some(start) = given.get("start").and_then(value) else {
        return refused(&format!("{name} is malformed"));
    };
    match given.get("stride").map(value) {
        Some(Some(stride)) => Ok(Some((start, stride))),
        Some(None) => refused(&format!("{name} is malformed")),
        None if nstep >= 2 => refused(&format!("{name} has no stride")),
        None => Ok(Some((start, zero))),
    }
}

/// The reply to a read request for mrec: what stands under `ok`, as JSON text.
pub fn read(path: &str) -> Result<String, No> {
    let root = Path::new(path);
    if !root.is_dir() {
        return unsupported("packed records");
    }
    if let Some(meta) = group(&root.join("meta"))? {
        let version = meta.get("attributes").and_then(|attributes| attributes.get("molrec_version"));
        if version.is_some_and(|version| version.integer() != Some(1)) {
            return refused("the molrec_version is not known");
        }
    }
    let folder = root.join("trajectory");
    let has = |name: &str| folder.join(name).exists();
    let Some(trajectory) = group(&folder)? else {
        return refused("there is no group trajectory");
    };
    let attributes = trajectory.get("attributes");
    let attribute = |name: &str| attributes.and_then(|found| found.get(name));

    let nstep = match attribute("nstep") {
        Some(count) => match count.integer() {
            Some(count) if count >= 0 => count,
            _ => return refused("nstep is no count"),
        },
        None if attribute("step_progression").is_some() || attribute("time_progression").is_some() => {
            return refused("a progression without nstep");
        }
        None if has("step") => return unsupported("arrays"),
        None => 0,
    };
    let steps = progression(attributes, "step_progression", nstep, Json::integer, 0)?;
    let times = progression(attributes, "time_progression", nstep, Json::real, 0.0)?;
    if nstep > 0 && ((steps.is_none() && has("step")) || (times.is_none() && has("time"))) {
        return unsupported("arrays");
    }
    let (first, stride) = match steps {
        Some(steps) => steps,
        None if nstep > 0 => return refused("nothing numbers the frames"),
        None => (0, 0),
    };
    let last = stride.checked_mul(nstep - 1).and_then(|way| way.checked_add(first));
    let fits = |step: i128| i64::try_from(step).is_ok();
    if nstep > 0 && !(fits(first) && last.is_some_and(fits)) {
        return refused("a step number is outside the 64-bit integers");
    }

    match attribute("sequence_schema") {
        None => return unsupported("a trajectory without a declaration"),
        Some(declared) if !declared.is_object() => return refused("sequence_schema is not an object"),
        Some(declared) => {
            for (part, what) in [("blocks", "blocks"), ("meta", "metadata per step")] {
                if declared.get(part).is_some_and(|found| !found.is_empty()) {
                    return unsupported(what);
                }
            }
        }
    }
    if has("box") {
        return unsupported("cells");
    }

    let mut frames = Vec::new();
    for i in 0..nstep {
        let mut text = format!(r#"{{"step":{}"#, integer(first + i * stride));
        if let Some((start, stride)) = times {
            let time: f64 = if nstep == 1 { start } else { start + i as f64 * stride };
            text += &format!(r#","time":{{"dtype":"f64","shape":[],"data":"{}"}}"#, base64(&time.to_le_bytes()));
        }
        frames.push(text + r#","meta":{},"blocks":{}}"#);
    }
    Ok(format!(r#"{{"format":"mrec","nstep":{},"frames":[{}]}}"#, integer(nstep), frames.join(",")))
}
