import { html } from 'hono/html'
import type { FormField } from '../../workflows/graph/form.ts'
import { isBox, isConsent } from '../../workflows/graph/formtexts.ts'

/** A field with what it holds and what is wrong with it; `at` is its place in the form. */
type Shown = {
  at: number
  name: string
  field: FormField
  required: boolean
  texts: string[]
  faults: string[]
}

/** The id of what a fault of the field leads to. */
export function idOf({ show, type }: FormField, at: number): string {
  return show === 'radio' || type === 'array' ? `f${at}-0` : `f${at}`
}

export function captionOf(name: string, { title }: FormField): string {
  return title || name
}

/** A field of a page, with its label, help and faults. */
export function renderField(shown: Shown) {
  const { field, name, texts } = shown
  if (field.show === 'note') {
    return html`<div class="field">${field.title ? html`<h2>${field.title}</h2>` : ''}
${field.description ? html`<p class="said">${field.description}</p>` : ''}</div>`
  }
  if (field.show === 'hidden')
    return html`${(texts.length > 0 ? texts : ['']).map((text) => html`<input type="hidden" name="${name}" value="${text}">`)}`
  if (isBox(field)) return renderBox(shown)
  if (field.enum && (field.show === 'radio' || field.type === 'array')) return renderChoices(shown)
  const id = idOf(field, shown.at)
  return html`<div class="field"><label for="${id}">${captionOf(name, field)} ${mark(shown)}</label>
${renderHelp(shown)}
${renderInput(shown, id)}
${renderWrong(shown)}</div>`
}

function mark({ required }: Shown) {
  return required ? '' : html`<span class="need">(optional)</span>`
}

function renderHelp({ at, field }: Shown) {
  const help = [
    ...(field.description ? [field.description] : []),
    ...(field.type === 'array' && !field.enum ? ['One a line.'] : []),
    ...(field.accept ? [`Accepted: ${field.accept.join(', ')}`] : []),
  ]
  return help.length === 0 ? '' : html`<p class="help said" id="f${at}-help">${help.join('\n')}</p>`
}

function renderWrong({ at, faults }: Shown) {
  return faults.length === 0 ? '' : html`<p class="wrong" id="f${at}-wrong">${faults.join('; ')}</p>`
}

/** The attributes of an input that tell programs what its help and faults are. */
function describe({ at, field, faults, required }: Shown) {
  const hasHelp = field.description || (field.type === 'array' && !field.enum) || field.accept
  const ids = [...(hasHelp ? [`f${at}-help`] : []), ...(faults.length > 0 ? [`f${at}-wrong`] : [])]
  const described = ids.length > 0 ? html` aria-describedby="${ids.join(' ')}"` : ''
  return html`${required ? html` required` : ''}${faults.length > 0 ? html` aria-invalid="true"` : ''}${described}`
}

function renderBox(shown: Shown) {
  const { at, name, field, texts } = shown
  const isTicked = ['true', 'on'].includes(texts.at(-1) ?? '')
  const must = { ...shown, required: isConsent(field) }
  return html`<div class="field"><label class="check" for="f${at}"><input type="checkbox" id="f${at}" name="${name}" value="true"
${isTicked ? html` checked` : ''}${describe(must)}> <span>${captionOf(name, field)}</span></label>
${renderHelp(shown)}
${renderWrong(shown)}</div>`
}

function renderChoices(shown: Shown) {
  const { at, name, field, required, texts, faults } = shown
  const isOne = field.type !== 'array'
  // No single box has to be ticked.
  const attributes = isOne ? describe(shown) : describe({ ...shown, required: false })
  return html`<fieldset${faults.length > 0 ? html` aria-describedby="f${at}-wrong"` : ''}>
<legend>${captionOf(name, field)} ${mark({ ...shown, required })}</legend>
${renderHelp(shown)}
${field.enum!.map(
  (one, i) =>
    html`<label class="check" for="f${at}-${i}"><input type="${isOne ? 'radio' : 'checkbox'}" id="f${at}-${i}" name="${name}"
 value="${String(one)}"${texts.includes(String(one)) ? html` checked` : ''}${attributes}> <span>${String(one)}</span></label>`,
)}
${renderWrong(shown)}</fieldset>`
}

const TYPES: Partial<Record<NonNullable<FormField['format']>, string>> = {
  email: 'email',
  date: 'date',
  'date-time': 'datetime-local',
  uri: 'url',
  password: 'password',
}

function renderInput(shown: Shown, id: string) {
  const { name, field, required, texts } = shown
  const { type, format, enum: choices, minimum, placeholder } = field
  const text = texts[0] ?? ''
  const own = html` id="${id}" name="${name}"${describe(shown)}`
  if (choices) {
    const isChosen = (one: unknown) => String(one) === text
    return html`<select${own}>${required && choices.some(isChosen) ? '' : html`<option value=""></option>`}
${choices.map((one) => html`<option value="${String(one)}"${isChosen(one) ? html` selected` : ''}>${String(one)}</option>`)}</select>`
  }
  if (type === 'file') {
    const accept = field.accept ? html` accept="${field.accept.join(',')}"` : ''
    return html`<input type="file"${own}${accept}${field.multiple ? html` multiple` : ''}>`
  }
  const example = placeholder ? html` placeholder="${placeholder}"` : ''
  // A browser leaves out the first line break.
  if (format === 'multiline' || type === 'array')
    return html`<textarea${own}${example} rows="5">
${type === 'array' ? texts.join('\n') : text}</textarea>`
  if (type === 'number' || type === 'integer') {
    // An input of the type number would lose what is no number: its fault could not be seen.
    const keys = type === 'integer' && (minimum ?? -1) >= 0 ? 'numeric' : 'decimal'
    return html`<input type="text"${own} inputmode="${keys}"${example} value="${text}">`
  }
  // A password that was typed is not sent back.
  if (format === 'password') return html`<input type="password"${own}${example} autocomplete="off">`
  const complete = format === 'email' ? html` autocomplete="email"` : ''
  const value = format === 'date-time' ? text.replace(/(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/, '') : text
  return html`<input type="${(format && TYPES[format]) ?? 'text'}"${own}${example}${complete} value="${value}">`
}
