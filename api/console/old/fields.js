import { h, newId } from './dom.js'
import { fromLocal, toLocal } from './time.js'

/**
 * The part of JSON Schema that a form is asked for by.
 * @typedef {{ type?: string, title?: string, description?: string, default?: unknown, enum?: (string | number | boolean)[],
 *   format?: string, minLength?: number, maxLength?: number, minimum?: number, maximum?: number }} Schema
 * @typedef {{ title?: string, description?: string, properties: Record<string, Schema>, required?: string[] }} Form
 * @typedef {{ element: HTMLElement, read: () => unknown }} Field
 */

const TYPES = /** @type {Record<string, string>} */ ({ email: 'email', date: 'date', uri: 'url' })

/** The fields of a form; `read` answers what was filled in, without what was left empty. @param {Form} form */
export function createFields({ title, description, properties, required = [] }) {
  const fields = Object.entries(properties).map(([name, schema]) => {
    return { name, ...createField(schema.title ?? name, schema, required.includes(name)) }
  })
  const element = h(
    'fieldset',
    { class: 'fields' },
    title && h('legend', null, title),
    description && h('p', { class: 'quiet' }, description),
    ...fields.map((field) => field.element),
  )
  return {
    element,
    read() {
      const values = fields.map(({ name, read }) => [name, read()])
      return Object.fromEntries(values.filter(([, value]) => value !== undefined))
    },
  }
}

/** @param {string} name @param {Schema} schema @param {boolean} required @returns {Field} */
function createField(name, schema, required) {
  const hint = schema.description ? newId('hint') : undefined
  const said = schema.description && h('p', { id: hint, class: 'quiet' }, schema.description)
  const id = newId('field')
  if (schema.type === 'boolean' && !schema.enum) {
    const box = h('input', {
      id,
      type: 'checkbox',
      'aria-describedby': hint,
      checked: schema.default === true,
    })
    const element = h('div', null, h('label', { class: 'check', for: id }, box, name), said)
    return { element, read: () => box.checked }
  }
  if (schema.type === 'array' && schema.enum) return createChoices(name, schema, said)
  const { input, read } = createInput(schema, { id, required, 'aria-describedby': hint })
  const star = required && h('span', { 'aria-hidden': 'true' }, ' *')
  return { element: h('div', null, h('label', { for: id }, name, star), input, said), read }
}

/** @param {Schema} schema @param {Record<string, unknown>} props */
function createInput(schema, props) {
  const given = schema.default
  if (schema.enum) {
    const choices = schema.enum
    const options = choices.map((one, at) => h('option', { value: at, selected: one === given }, String(one)))
    const input = h('select', props, h('option', { value: '' }, ''), ...options)
    return { input, read: () => (input.value === '' ? undefined : choices[Number(input.value)]) }
  }
  if (schema.type === 'number' || schema.type === 'integer') {
    const step = schema.type === 'integer' ? 1 : 'any'
    const input = h('input', { ...props, type: 'number', step, min: schema.minimum, max: schema.maximum })
    if (typeof given === 'number') input.value = String(given)
    return { input, read: () => (input.value === '' ? undefined : input.valueAsNumber) }
  }
  const size = { minlength: schema.minLength, maxlength: schema.maxLength }
  if (schema.type === 'array' || schema.format === 'multiline') {
    const input = h('textarea', { ...props, ...(schema.type === 'array' ? {} : size), rows: 3 })
    input.value = Array.isArray(given) ? given.join('\n') : String(given ?? '')
    if (schema.type !== 'array') return { input, read: () => input.value || undefined }
    input.placeholder = 'One a line'
    return { input, read: () => (input.value === '' ? undefined : input.value.split('\n').filter(Boolean)) }
  }
  if (schema.format === 'date-time') {
    const input = h('input', { ...props, type: 'datetime-local' })
    input.value = toLocal(typeof given === 'string' ? given : undefined)
    return { input, read: () => fromLocal(input.value) }
  }
  const input = h('input', {
    ...props,
    ...size,
    type: TYPES[schema.format ?? ''] ?? 'text',
    autocomplete: 'off',
  })
  input.value = String(given ?? '')
  return { input, read: () => input.value || undefined }
}

/** Any number of the choices. @param {string} name @param {Schema} schema @param {import('./dom.js').Child} said @returns {Field} */
function createChoices(name, schema, said) {
  const given = Array.isArray(schema.default) ? schema.default : []
  const boxes = (schema.enum ?? []).map((value) => {
    return { value, box: h('input', { type: 'checkbox', checked: given.includes(value) }) }
  })
  const element = h(
    'fieldset',
    null,
    h('legend', null, name),
    ...boxes.map(({ value, box }) => h('label', { class: 'check' }, box, String(value))),
    said,
  )
  return { element, read: () => boxes.flatMap(({ value, box }) => (box.checked ? [value] : [])) }
}
