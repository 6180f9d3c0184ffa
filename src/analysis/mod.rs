//! Answers about a report as plain data: what every view and every command shows, computed once.
