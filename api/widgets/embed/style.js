/**
 * The sheet of a widget. It is made by the script, so that no policy of a page keeps it out, and holds only within the
 * widget's own tree.
 *
 * @param {import('./talk.js').Theme} theme
 * @param {boolean} onPage
 */
export function makeSheet({ colours, position }, onPage) {
  const [accent, background, text] = [colours.accent, colours.background, colours.text].map(checkColour)
  const side = position === 'bottom-left' ? 'left' : 'right'
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(`
:host { all: initial !important; --accent: ${accent}; --on-accent: ${contrast(accent)}; --back: ${background}; --text: ${text};
  --line: color-mix(in srgb, var(--text) 16%, var(--back)); --soft: color-mix(in srgb, var(--text) 6%, var(--back)); }
.launcher, .panel { font: 15px/1.5 system-ui, sans-serif; color: var(--text); text-align: start; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button, textarea, input { font: inherit; color: inherit; }
button { cursor: pointer; border: 0; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
svg { width: 24px; height: 24px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round;
  stroke-linejoin: round; display: block; }
.launcher { position: fixed; z-index: 2147483000; bottom: 20px; ${side}: 20px; width: 56px; height: 56px;
  border-radius: 50%; background: var(--accent); color: var(--on-accent); display: grid; place-items: center;
  box-shadow: 0 6px 20px rgb(0 0 0 / .25); }
.panel { position: fixed; z-index: 2147483001; bottom: 88px; ${side}: 20px; width: 376px; height: 560px;
  max-height: calc(100dvh - 108px); display: flex; flex-direction: column; overflow: hidden; border-radius: 14px;
  background: var(--back); border: 1px solid var(--line); box-shadow: 0 12px 40px rgb(0 0 0 / .22); }
header { display: flex; align-items: center; gap: 8px; padding: 12px 12px 12px 16px; background: var(--accent);
  color: var(--on-accent); }
header :focus-visible { outline-color: var(--on-accent); }
h2 { all: unset; flex: 1; font-size: 16px; font-weight: 600; overflow-wrap: anywhere; }
.close { background: transparent; padding: 6px; border-radius: 8px; color: inherit; }
.log { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 16px; display: flex; flex-direction: column;
  gap: 10px; }
.said { max-width: 85%; padding: 8px 12px; border-radius: 12px; overflow-wrap: anywhere; background: var(--soft);
  align-self: flex-start; }
.said.mine { align-self: flex-end; background: var(--accent); color: var(--on-accent); white-space: pre-wrap; }
.said.failed { background: transparent; border: 1px solid var(--line); }
.said :is(p, ul, ol, pre) { margin: 0; }
.said > * + * { margin-top: 8px !important; }
.said :is(ul, ol) { padding-inline-start: 20px; }
.said a { color: inherit; text-decoration: underline; }
.said code { font: 13px/1.5 ui-monospace, monospace; }
.said pre { overflow-x: auto; padding: 8px; border-radius: 8px; background: var(--line); }
.waiting { display: inline-flex; gap: 4px; padding: 6px 0; }
.waiting i { width: 7px; height: 7px; border-radius: 50%; background: currentColor; opacity: .45; }
form { display: flex; gap: 8px; padding: 12px; border-top: 1px solid var(--line); align-items: flex-end; }
form.email { flex-direction: column; align-items: stretch; }
textarea, input { flex: 1; min-width: 0; padding: 9px 12px; border-radius: 10px; border: 1px solid
  color-mix(in srgb, var(--text) 55%, var(--back)); background: var(--back); resize: none; }
textarea { max-height: 140px; field-sizing: content; min-height: 42px; }
::placeholder { color: color-mix(in srgb, var(--text) 65%, var(--back)); opacity: 1; }
.send { flex: none; padding: 9px; border-radius: 10px; background: var(--accent); color: var(--on-accent);
  text-align: center; }
.send[disabled] { opacity: .5; cursor: default; }
.quiet { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (max-width: 480px) {
  .panel { inset: 0; width: auto; height: auto; max-height: none; border: 0; border-radius: 0; }
  textarea, input { font-size: 16px; }
}
@media (prefers-reduced-motion: no-preference) {
  .panel { animation: come .16s ease-out; }
  .waiting i { animation: beat 1.2s infinite ease-in-out; }
  .waiting i:nth-child(2) { animation-delay: .15s; }
  .waiting i:nth-child(3) { animation-delay: .3s; }
  @keyframes come { from { opacity: 0; transform: translateY(12px); } }
  @keyframes beat { 40% { opacity: 1; transform: translateY(-3px); } }
}
@media (forced-colors: active) { .launcher, .send { border: 1px solid; } }
${onPage ? '.panel { inset: 0; width: auto; height: auto; max-height: none; border: 0; border-radius: 0; }' : ''}
`)
  return sheet
}

/**
 * The service sends no other colours. Any other text could add further rules to the sheet.
 *
 * @param {string} text
 */
function checkColour(text) {
  return /^#[0-9a-f]{6}$/i.test(text) ? text : '#1f5fd0'
}

/**
 * Black or white, whichever can be read better on a colour (WCAG's contrast).
 *
 * @param {string | undefined} colour
 */
function contrast(colour = '#000000') {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  const light = 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0)
  return light > 0.179 ? '#000000' : '#ffffff'
}
