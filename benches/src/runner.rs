//! What the measuring binaries do: one request in, one JSON document out.

use std::hint::spin_loop;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::thread;

use rowpar::{Kernels, RowPool};

use crate::decode_suite::DecodeSuite;
use crate::gguf::MappedFile;
use crate::library::Library;
use crate::matvec::MatvecSuite;
use crate::model_suite::ModelSuite;
use crate::protocol::{ModelRequest, Report, Request, Suite};
use crate::{Backend, Contender, ModelShape, PoolError, dispatch, round_trip};

/// What one measurement gives.
pub type Outcome = Result<Report, String>;

/// A measurement that waits for its pool.
pub type Measure<'a> = Box<dyn FnOnce(&dyn RowPool) -> Outcome + Send + 'a>;

/// The body of a measuring binary: reads the request that is its only argument, has the pool built by `with_pool` for the
/// backend and the number of threads given, or the library set up by `open`, and prints the [`Report`], or what went wrong on one
/// line.
///
/// # Safety
///
/// A model's file that the request names is mapped into memory: nobody may write to it or make it shorter while the process runs
/// (see [`MappedFile::open`]). No program can make sure of that by itself, so it says to whoever starts it that they have to.
pub unsafe fn main(
    program: &str,
    with_pool: impl FnOnce(Contender, usize, Measure<'_>) -> Result<Outcome, PoolError>,
    open: impl FnOnce(Backend, usize) -> Result<Box<dyn Library>, PoolError>,
) -> ExitCode {
    // SAFETY: the caller's promise, passed on.
    match unsafe { run(with_pool, open) } {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// # Safety
///
/// As [`main`].
unsafe fn run(
    with_pool: impl FnOnce(Contender, usize, Measure<'_>) -> Result<Outcome, PoolError>,
    open: impl FnOnce(Backend, usize) -> Result<Box<dyn Library>, PoolError>,
) -> Result<String, PoolError> {
    let text = std::env::args().nth(1).ok_or("the request is missing: one JSON object")?;
    let request: Request = serde_json::from_str(&text)?;
    // SAFETY: the caller's promise, passed on.
    let prepared = unsafe { Prepared::new(&request) }?;
    let (contender, threads) = (request.backend, request.threads);
    let mut report = if contender.backend().is_library() {
        prepared.measure_library(&request, || open(contender.backend(), threads))
    } else {
        let measure: Measure<'_> = Box::new(|pool| prepared.measure(&request, pool));
        let outcome = with_pool(contender, threads, measure);
        outcome.map_err(|error| format!("no pool for {contender}: {error}"))?.map_err(Into::into)
    }?;
    report.isa = Kernels::best().isa().to_string();
    Ok(serde_json::to_string(&report)?)
}

/// What is made before there is a pool, whose waiting threads would be in the way.
enum Prepared {
    Dispatch { round_trip_ns: f64 },
    Matvec(MatvecSuite),
    Decode(Box<DecodeSuite>),
    Model(ModelSuite),
}

impl Prepared {
    /// # Safety
    ///
    /// As [`main`].
    unsafe fn new(request: &Request) -> Result<Self, String> {
        let shape: ModelShape = request.shape.parse()?;
        Ok(match request.suite {
            Suite::Dispatch => Self::Dispatch { round_trip_ns: round_trip::measure_ns() },
            Suite::Matvec => {
                let (variants, threads) = (request.variants.clone(), request.threads);
                Self::Matvec(MatvecSuite::new(shape, variants, request.working_set, threads)?)
            }
            Suite::Decode => {
                let suite = DecodeSuite::new(shape, &request.variants, request.threads);
                Self::Decode(Box::new(suite.map_err(|error| error.to_string())?))
            }
            // SAFETY: the caller's promise, passed on.
            Suite::Model => Self::Model(unsafe { open(request.model.as_ref()) }?),
        })
    }

    fn measure_library(
        self,
        request: &Request,
        open: impl FnOnce() -> Result<Box<dyn Library>, PoolError>,
    ) -> Result<Report, PoolError> {
        match self {
            Self::Matvec(suite) => suite.measure_library(open, request.budget()),
            _ => Err(format!("{} is no pool: it runs in the matvec suite", request.backend).into()),
        }
    }

    fn measure(self, request: &Request, pool: &dyn RowPool) -> Outcome {
        match self {
            Self::Dispatch { round_trip_ns } => Ok(dispatch::measure(pool, request, round_trip_ns)),
            Self::Matvec(suite) => suite.measure(pool, request.budget()),
            Self::Decode(mut suite) => suite.measure(pool, request.budget()),
            Self::Model(suite) => suite.measure(pool, request.variants.packed),
        }
    }
}

/// # Safety
///
/// As [`main`].
unsafe fn open(request: Option<&ModelRequest>) -> Result<ModelSuite, String> {
    let request = request.ok_or("the request names no model")?;
    // SAFETY: the caller's promise, passed on.
    let file = unsafe { MappedFile::open(&request.file) };
    let file = file.map_err(|error| format!("{}: {error}", request.file.display()))?;
    Ok(ModelSuite::new(file, request.clone()))
}

/// Takes all the time of one CPU that it gets, until its standard input closes: a neighbour to order.
///
/// Prints a line when it has begun. Whoever started it holds the other end of the pipe, so it does not outlive them.
pub fn busy() -> ! {
    thread::spawn(|| {
        // An error ends it as well: there is nobody at the other end.
        _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        std::process::exit(0);
    });
    // The line is a courtesy: if nobody reads it, the input is closed too.
    _ = writeln!(io::stdout(), "busy");
    loop {
        spin_loop();
    }
}
