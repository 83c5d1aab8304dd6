//! The page: one file that needs nothing else, no script and no network.

use core::fmt::Write as _;

use super::svg::escape;
use super::{Figure, Section, Table};

const STYLE: &str = include_str!("page.css");
const WRITES: &str = "a string takes every write";

/// The whole page.
pub(crate) fn page(sections: &[Section], summary: &[String]) -> String {
    let mut body = String::new();
    for section in sections {
        let Section { id, title, figures } = section;
        writeln!(body, "<section id=\"{id}\">\n<h2>{}</h2>", escape(title)).expect(WRITES);
        for figure in figures {
            body.push_str(&one(figure));
        }
        body.push_str("</section>\n");
    }
    let contents: String = sections
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a>\n", section.id, escape(section.title)))
        .collect();
    let summary: String = summary.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Viaduct: figures</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>Viaduct: figures</h1>\n{summary}<nav>\n{contents}</nav>\n</header>\n\
         {body}</main>\n</body>\n</html>\n"
    )
}

fn one(figure: &Figure) -> String {
    let Figure { id, title, again, about, clock, machine, svgs, marks, legend, tables } = figure;
    let mut text = format!("<figure id=\"{id}\">\n<h3>{}</h3>\n", escape(title));
    text.push_str(&svgs.concat());
    text.push_str(&keys(legend));
    text.push_str("<figcaption>\n");
    writeln!(text, "<p>{}</p>", escape(about)).expect(WRITES);
    text.push_str(&printed(marks));
    let facts = [
        ("after", "Draws again", again),
        ("clock", "Clock", clock),
        ("machine", "Machine", machine),
    ];
    for (class, name, value) in facts {
        writeln!(text, "<p class=\"{class}\"><b>{name}:</b> {}.</p>", escape(value)).expect(WRITES);
    }
    text.push_str("</figcaption>\n");
    tables.iter().for_each(|part| text.push_str(&table(part)));
    text.push_str("</figure>\n");
    text
}

/// Colours with their names.
fn keys(legend: &[String]) -> String {
    if legend.is_empty() {
        return String::new();
    }
    let keys: String = legend
        .iter()
        .enumerate()
        .map(|(at, name)| format!("<li><i class=\"swatch s{at}\"></i>{}</li>\n", escape(name)))
        .collect();
    format!("<ul class=\"keys\">\n{keys}</ul>\n")
}

/// What papers print, by the letters in the figure.
fn printed(marks: &[(String, String)]) -> String {
    if marks.is_empty() {
        return String::new();
    }
    let marks: String = marks
        .iter()
        .map(|(letter, text)| format!("<li><b>{letter}</b> {}</li>\n", escape(text)))
        .collect();
    format!(
        "<p>Printed in the paper (diamonds, dashes):</p>\n<ul class=\"printed\">\n{marks}</ul>\n"
    )
}

fn table(table: &Table) -> String {
    let cells = |tag: &str, cells: &[String]| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let rows: String =
        table.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    format!(
        "<details>\n<summary>{}</summary>\n<div class=\"scroll\"><table>\n<thead><tr>{}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</details>\n",
        escape(&table.title),
        cells("th", &table.head)
    )
}
