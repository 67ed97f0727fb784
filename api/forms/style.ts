import { writePagePolicy } from '../http/pagepolicy.ts'

/** The look of the pages of forms: one column, which fits a phone; light or dark as the reader's system is. */
export const FORM_STYLE = `
:root { color-scheme: light dark; --text: #1b1f24; --quiet: #57606a; --ground: #f4f5f7; --panel: #ffffff;
  --line: #767f8a; --accent: #1f5fd0; --on-accent: #ffffff; --wrong: #b3261e; --wrong-ground: #fdecea }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --quiet: #a3adb8; --ground: #14171b; --panel: #1e2329;
  --line: #8b95a1; --accent: #8ab4ff; --on-accent: #0d1830; --wrong: #ff9d94; --wrong-ground: #3a1f1d } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 38rem; margin: 6vh auto; padding: 2rem; background: var(--panel); border-radius: 12px }
@media (max-width: 42rem) { main { margin: 0; border-radius: 0; min-height: 100vh; padding: 1.25rem } }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .5rem }
h2 { font-size: 1rem; margin: 0 0 .25rem }
p { margin: 0 0 1rem }
h1, h2, p, label, legend, li, pre, a { overflow-wrap: anywhere }
.said { white-space: pre-line }
.quiet, .help { color: var(--quiet) }
.help { font-size: .9rem; margin: 0 0 .35rem }
form { margin: 1.5rem 0 0 }
.field, fieldset { margin: 0 0 1.25rem; padding: 0; border: 0; min-width: 0 }
.field > label:not(.check), legend { display: block; font-weight: 600; padding: 0; margin: 0 0 .25rem }
.check { display: flex; gap: .6rem; align-items: flex-start; padding: .35rem 0; font-weight: 400 }
.check input { width: 1.25rem; height: 1.25rem; margin: .15rem 0 0; flex: none; accent-color: var(--accent) }
.need { color: var(--quiet); font-weight: 400; font-size: .9rem }
:where(input:not([type=checkbox], [type=radio], [type=file]), select, textarea) {
  font: inherit; color: inherit; background: var(--panel); width: 100%; min-height: 2.75rem; padding: .5rem .75rem;
  border: 1px solid var(--line); border-radius: 8px }
textarea { min-height: 7rem; resize: vertical }
input[type=file] { font: inherit; max-width: 100%; padding: .35rem 0 }
[aria-invalid=true] { border-color: var(--wrong); border-width: 2px }
.wrong { color: var(--wrong); margin: .35rem 0 0; font-weight: 600 }
.faults { background: var(--wrong-ground); border-left: 4px solid var(--wrong); padding: 1rem; margin: 1rem 0 }
.faults ul { margin: 0; padding: 0 0 0 1.25rem }
.faults a, a { color: inherit }
button { font: inherit; font-weight: 600; min-height: 2.75rem; padding: .6rem 1.5rem; border: 0; border-radius: 8px;
  background: var(--accent); color: var(--on-accent); cursor: pointer }
@media (max-width: 42rem) { button { width: 100% } }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
pre { white-space: pre-wrap; font: .9rem/1.5 ui-monospace, monospace; background: var(--ground); padding: 1rem; border-radius: 8px }
`

/** A page loads nothing, runs nothing and can be in no frame; its form goes to this service only. */
export const FORM_PAGE_POLICY = writePagePolicy(FORM_STYLE, { sends: true })
