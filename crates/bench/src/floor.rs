//! Minimum results of benchmarks: a ratio of two rows of one run, and its bound.
#![expect(clippy::print_stdout, reason = "benchmarks print tables")]

/// One requirement: the quotient of two rows of one run and its bound.
#[derive(Debug)]
pub struct Floor {
    pub text: String,
    pub value: f64,
    pub bound: f64,
    /// Whether the bound is the largest allowed value; otherwise the smallest.
    pub at_most: bool,
}

/// Prints which minimums are reached.
pub fn print(floors: &[Floor]) {
    println!("\n| floor | bound | measured | |");
    println!("|---|---|---|---|");
    for floor in floors {
        let (sign, reached) = match floor.at_most {
            true => ("<=", floor.value <= floor.bound),
            false => (">=", floor.value >= floor.bound),
        };
        println!(
            "| {} | {sign} {:.2} | {:.3} | {} |",
            floor.text,
            floor.bound,
            floor.value,
            if reached { "reached" } else { "MISSED" }
        );
    }
}
