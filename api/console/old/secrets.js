import { h, newId } from './dom.js'

/**
 * A key of a credential's data, as GET /api/credential-types describes it.
 * @typedef {{ name: string, kind: string, required: boolean, requiredUnless?: string[], secret: boolean, options?: string[], default?: unknown }} Key
 */

/**
 * The fields of a credential's data. With the names of the keys that it has already, none is required: `read` gives what was
 * filled in, and null for a key that is to be removed.
 * @param {Key[]} keys @param {string[]} [has]
 */
export function createKeys(keys, has) {
  const fields = keys.map((key) => createKey(key, has))
  return {
    element: h('div', { class: 'fields' }, ...fields.map(({ element }) => element)),
    read() {
      const values = fields.map(({ name, read }) => /** @type {const} */ ([name, read()]))
      return Object.fromEntries(values.filter(([, value]) => value !== undefined))
    },
  }
}

/** @param {Key} key @param {string[] | undefined} has */
function createKey(key, has) {
  const { name, required, requiredUnless } = key
  const id = newId('key')
  const known = has?.includes(name) ?? false
  const must = required && !has
  const { input, read } = createInput(key, { id, required: must, autocomplete: 'off' }, has !== undefined)
  const star = must && h('span', { 'aria-hidden': 'true' }, ' *')
  const said = [
    known ? 'set' : '',
    requiredUnless ? `required unless ${requiredUnless.join(' and ')} are given` : '',
    key.kind === 'list' ? 'one a line' : '',
  ].filter(Boolean)
  const drop = known && !required ? h('input', { type: 'checkbox', id: newId('drop') }) : null
  const element = h(
    'div',
    null,
    h('label', { for: id }, name, star),
    input,
    said.length > 0 && h('p', { class: 'quiet' }, said.join(', ')),
    drop && h('label', { class: 'check', for: drop.id }, drop, `Remove ${name}`),
  )
  return { name, element, read: () => (drop?.checked ? null : read()) }
}

/** @param {Key} key @param {Record<string, unknown>} props @param {boolean} isEdit */
function createInput({ kind, secret, options = [], default: given }, props, isEdit) {
  if (kind === 'choice' || kind === 'boolean') {
    const values = kind === 'boolean' ? [true, false] : options
    const input = h(
      'select',
      props,
      h('option', { value: '' }, ''),
      ...values.map((one, at) => h('option', { value: at, selected: !isEdit && one === given }, String(one))),
    )
    return { input, read: () => (input.value === '' ? undefined : values[Number(input.value)]) }
  }
  if (kind === 'lines' || kind === 'list') {
    const input = h('textarea', { ...props, rows: 4, spellcheck: 'false', class: secret ? 'secret' : null })
    return {
      input,
      read: () => {
        if (input.value.trim() === '') return undefined
        return kind === 'lines'
          ? input.value
          : input.value
              .split('\n')
              .map((one) => one.trim())
              .filter(Boolean)
      },
    }
  }
  const type = secret ? 'password' : kind === 'number' ? 'number' : kind === 'url' ? 'url' : 'text'
  // Not the password of this service: browsers are not to fill it in.
  const input = h('input', {
    ...props,
    type,
    autocomplete: secret ? 'new-password' : 'off',
    spellcheck: 'false',
  })
  if (!isEdit && given !== undefined && !secret) input.value = String(given)
  return {
    input,
    read: () => (input.value === '' ? undefined : kind === 'number' ? input.valueAsNumber : input.value),
  }
}
