/** The page's style sheet: for a screen, and for paper with the report's id and the number on each page. */
export function writeReportStyle(report: { id: string; type: string; from: string; to: string }): string {
  const period = `${report.from.slice(0, 10)} to ${report.to.slice(0, 10)}`
  return `
:root { --ink: #1a1f2b; --soft: #5b6475; --line: #d5d9e2; --head: #eef1f6; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1200px; padding: 24px; color: var(--ink); background: #fff;
  font: 14px/1.45 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 17px; margin: 32px 0 4px; break-after: avoid; }
.kind { margin: 0; color: var(--soft); font-size: 12px; letter-spacing: 0.08em; text-transform: uppercase; }
.name { font-size: 16px; margin: 4px 0 16px; overflow-wrap: anywhere; }
.about, .cut, .none { color: var(--soft); margin: 0 0 8px; max-width: 80ch; }
.about { break-after: avoid; }
.cut { margin-top: 6px; color: #8a4b00; }
.verdict { border: 1px solid; border-left-width: 6px; border-radius: 4px; padding: 8px 14px; margin: 0 0 16px; }
.verdict h2 { margin: 0; }
.verdict p { margin: 4px 0 0; overflow-wrap: anywhere; }
.good { border-color: #1d7a46; background: #effaf3; }
.fair { border-color: #9a6700; background: #fff8e6; }
.bad { border-color: #b42318; background: #fef1f0; }
table { border-collapse: collapse; width: 100%; font-size: 12px; }
th, td { border: 1px solid var(--line); padding: 3px 6px; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
thead { display: table-header-group; }
thead th { background: var(--head); overflow-wrap: normal; }
tr { break-inside: avoid; }
tbody tr:nth-child(even) td { background: #fafbfd; }
.facts { width: auto; max-width: 100%; }
.facts th { background: var(--head); white-space: nowrap; font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.time { min-width: 74px; overflow-wrap: normal; font-variant-numeric: tabular-nums; }
.word { overflow-wrap: normal; }
.id, pre, code { font-family: ui-monospace, "Liberation Mono", monospace; font-size: 11px; }
td.id, .word .id { overflow-wrap: anywhere; }
td.id { min-width: 140px; }
.word .id { display: block; min-width: 130px; color: var(--soft); }
.empty { color: var(--soft); }
.unseen { border: 1px solid #b42318; border-radius: 2px; color: #b42318; font-size: 0.8em; padding: 0 2px; white-space: nowrap; }
pre { border: 1px solid var(--line); padding: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
nav ol { margin: 4px 0; padding-left: 22px; }
.count { color: var(--soft); }
@page { size: A4 landscape; margin: 16mm 12mm 16mm;
  @top-left { content: "Perdure audit: ${report.type}"; font: 9px sans-serif; color: #5b6475; }
  @top-right { content: "${period}"; font: 9px sans-serif; color: #5b6475; }
  @bottom-left { content: "Report ${report.id}"; font: 9px sans-serif; color: #5b6475; }
  @bottom-right { content: "Page " counter(page) " of " counter(pages); font: 9px sans-serif; color: #5b6475; } }
@media print {
  body { max-width: none; padding: 0; font-size: 11px; }
  table { font-size: 9.5px; }
  .id, pre, code { font-size: 8.5px; }
  td.id, .word .id { min-width: 100px; }
  nav { break-after: page; }
  #proof, pre { break-inside: avoid; }
  a { color: inherit; text-decoration: none; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
`
}
