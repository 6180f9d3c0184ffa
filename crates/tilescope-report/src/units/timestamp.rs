//! Formatting of points in time.

/// A point in time, from seconds since 1970: `2026-11-21 17:53 UTC`.
pub fn format_timestamp(unix_seconds: u64) -> String {
    let days = unix_seconds / 86_400;
    let minutes = unix_seconds / 60 % 1_440;
    let (year, month, day) = date(days);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Year, month and day of a number of days since 1970, after `civil_from_days` of H. Hinnant's
/// "chrono-compatible low-level date algorithms": years begin in March so that leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    // Days from March of the year 0 to 1970, and days of 400 years.
    const TO_1970: u64 = 719_468;
    const ERA: u64 = 146_097;
    let days = days.saturating_add(TO_1970);
    let of_era = days % ERA;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (days / ERA * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_years_and_minutes() {
        let cases = [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (1_670_617_699, "2022-12-09 20:28 UTC"),
        ];
        for (seconds, words) in cases {
            assert_eq!(format_timestamp(seconds), words);
        }
    }

    #[test]
    fn every_day_occurs_once() {
        let mut before = date(0);
        for days in 1..200_000 {
            let (year, month, day) = date(days);
            let next_day = (year, month) == (before.0, before.1) && day == before.2 + 1;
            let next_month = (year, month, day) == (before.0, before.1 + 1, 1);
            let next_year = (year, month, day) == (before.0 + 1, 1, 1) && before.1 == 12;
            assert!(next_day || (next_month && before.2 >= 28) || next_year, "{days}");
            before = (year, month, day);
        }
    }
}
