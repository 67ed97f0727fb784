import * as v from 'valibot'
import { formSchema } from '../../graph/form.ts'
import { getOwn, isObject } from '../../json.ts'
import { readRedirect } from '../../nodes/forms.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import { needCredential } from '../signins/asking.ts'
import { isTemplate, keepText, listObjects, plainText } from '../texts.ts'
import { readHookPath } from './paths.ts'

export const FORM_MAPPERS: Record<string, NodeMapper> = { formTrigger: mapFormTrigger, form: mapForm }

const MAX_FIELDS = 100
const SENT = 'Your response has been recorded'

type Field = Record<string, unknown>
type Fields = { properties: Record<string, Field>; required: string[] }

function mapFormTrigger(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  const { report } = tools
  const options = isObject(parameters.options) ? parameters.options : {}
  const form = readFields(
    listObjects(Object(parameters.formFields).values),
    node,
    report,
    'formFields.values',
  )
  const { responseMode = 'onReceived' } = parameters
  if (responseMode === 'responseNode') {
    const message =
      'In n8n a Respond to Webhook node says what the page shows. Here the page says that the answers have arrived, once ' +
      'the execution has ended: put a FORM with completion in the place of that node.'
    report('parameter', 'parameters.responseMode', message, responseMode)
  }
  const handled = new Set([
    'respondWithOptions',
    'formSubmittedText',
    'buttonLabel',
    'path',
    'appendAttribution',
  ])
  if (options.useWorkflowTimezone === true || version !== 2) handled.add('useWorkflowTimezone')
  for (const [key, value] of Object.entries(options))
    if (!handled.has(key) && value !== false && value !== '')
      reportMissingOption(report, `parameters.options.${key}`, value)
  return {
    type: 'FORM_TRIGGER',
    config: {
      path: readHookPath(node, report, options.path),
      form,
      ...textEntry('title', still(readWords(parameters.formTitle, report, 'formTitle')).slice(0, 200)),
      ...textEntry('description', still(readWords(parameters.formDescription, report, 'formDescription'))),
      ...textEntry('button', still(plainText(options.buttonLabel) ?? '')),
      ...readAccess(node, tools),
      completion: readSent(options, responseMode, report),
      shape: 'n8n',
    },
  }
}

/** Who may fill it in. Without the password that n8n asks for it must not be open to all. */
function readAccess(node: SourceNode, tools: MapperTools): Record<string, unknown> {
  const { authentication = 'none' } = node.parameters
  const { report } = tools
  if (authentication === 'none') return {}
  const at = 'parameters.authentication'
  if (authentication === 'n8nUserAuth') {
    const message =
      'n8n asks for its own users. This form is for signed-in members of the team, of whom the answers have ' +
      '{id, email, name} and no firstName and lastName.'
    report('credential', at, message, authentication)
    return { access: 'members' }
  }
  const need = needCredential(node, tools, {
    type: 'httpBasicAuth',
    uses: ['SIGNATURE'],
    types: ['SIGNATURE'],
    enter: 'The password, as the secret. There is no user name: the form asks for the password only.',
  })
  if (need.credentialId !== null) return { access: 'password', password: { credentialId: need.credentialId } }
  const message =
    'n8n asks for a user and a password. Credentials are not imported, and until you set access: password only signed-in ' +
    'members of the team can fill in this form.'
  report('credential', at, message, authentication)
  return { access: 'members' }
}

/** The last page that a trigger's options say. */
function readSent(options: Record<string, unknown>, mode: unknown, report: ProblemReporter): Field {
  const { respondWith, formSubmittedText, redirectUrl } = Object(Object(options.respondWithOptions).values)
  const when = mode === 'onReceived' ? {} : { when: 'ended' }
  if (respondWith === 'redirect') {
    const url = plainText(redirectUrl)
    const href = url === undefined ? undefined : readRedirect(url)
    if (href !== undefined) return { show: 'redirect', url: href, ...when }
    reportRedirect(report, 'parameters.options.respondWithOptions', redirectUrl)
    return { show: 'text', text: SENT, ...when }
  }
  const given = formSubmittedText ?? options.formSubmittedText
  return { show: 'text', text: still(readWords(given, report, 'options.formSubmittedText')) || SENT, ...when }
}

function reportRedirect(report: ProblemReporter, path: string, value: unknown): void {
  const message =
    'n8n leads on to this address. Perdure leads from a form only to an address that begins with https://, and shows a ' +
    'text instead.'
  report('parameter', path, message, value)
}

function mapForm(node: SourceNode, { report }: MapperTools): MappedNode {
  const { parameters } = node
  const options = isObject(parameters.options) ? parameters.options : {}
  const shown = new Set(['formTitle', 'formDescription', 'buttonLabel', 'appendAttribution'])
  for (const [key, value] of Object.entries(options))
    if (!shown.has(key)) reportMissingOption(report, `parameters.options.${key}`, value)
  if (parameters.operation === 'completion')
    return { type: 'FORM', config: { completion: readEnding(parameters, report), shape: 'n8n' } }
  const config = {
    form: readFields(listPageFields(parameters), node, report, 'formFields.values'),
    ...textEntry('title', keepWords(options.formTitle, report, 'options.formTitle')),
    ...textEntry('description', keepWords(options.formDescription, report, 'options.formDescription')),
    ...textEntry('button', keepText(options.buttonLabel)),
    ...readLimit(parameters, report),
    shape: 'n8n',
  }
  return { type: 'FORM', config, handles: [null] }
}

/** The fields of a page, which n8n also takes as JSON. Throws if an expression computes them. */
function listPageFields(parameters: Record<string, unknown>): Record<string, unknown>[] {
  if (parameters.defineForm !== 'json') return listObjects(Object(parameters.formFields).values)
  const { jsonOutput } = parameters
  const text = typeof jsonOutput === 'string' ? plainText(jsonOutput) : JSON.stringify(jsonOutput)
  if (text === undefined) throw new Error('an expression computes the fields of its page')
  try {
    return listObjects(JSON.parse(text))
  } catch {
    throw new Error('the fields of its page are no valid JSON')
  }
}

const UNITS: Record<string, number> = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 }

/** How long the page waits. */
function readLimit(parameters: Record<string, unknown>, report: ProblemReporter): Field {
  if (parameters.limitWaitTime !== true) return {}
  const { limitType = 'afterTimeInterval', resumeAmount = 1, resumeUnit = 'hours' } = parameters
  const ms = Number(resumeAmount) * (getOwn(UNITS, String(resumeUnit)) ?? Number.NaN)
  if (limitType !== 'afterTimeInterval' || !(ms >= 1)) {
    const message = 'n8n waits until a certain time. Perdure takes a number of milliseconds: set timeoutMs.'
    report('parameter', 'parameters.limitType', message, limitType)
    return {}
  }
  const message =
    'When its time is over, n8n goes on by the same way as with answers. Here the node leaves by the handle timeout, which ' +
    'leads nowhere: connect it.'
  report('connection', 'parameters.limitWaitTime', message, resumeAmount)
  return { timeoutMs: Math.min(Math.round(ms), 366 * UNITS.days!) }
}

function readEnding(parameters: Record<string, unknown>, report: ProblemReporter): Field {
  const { respondWith = 'text', redirectUrl, responseText, completionTitle, completionMessage } = parameters
  const title = textEntry('title', keepWords(completionTitle, report, 'completionTitle'))
  if (respondWith === 'redirect') {
    const url = keepText(redirectUrl)
    if (isTemplate(redirectUrl) || readRedirect(url) !== undefined) return { show: 'redirect', url }
    reportRedirect(report, 'parameters.redirectUrl', redirectUrl)
    return { show: 'text', ...title }
  }
  if (respondWith === 'showText')
    return { show: 'text', ...textEntry('text', keepWords(responseText, report, 'responseText')) }
  if (respondWith === 'returnBinary') {
    const message =
      'The last page of n8n gives a file to its reader. Perdure shows only the text of this page.'
    report('parameter', 'parameters.respondWith', message, respondWith)
  }
  return {
    show: 'text',
    ...title,
    ...textEntry('text', keepWords(completionMessage, report, 'completionMessage')),
  }
}

/** The fields as the form here has them, in their order. */
function readFields(
  given: Record<string, unknown>[],
  node: SourceNode,
  report: ProblemReporter,
  at: string,
): Fields {
  const form: Fields = { properties: {}, required: [] }
  for (const [i, field] of given.slice(0, MAX_FIELDS).entries()) {
    const path = `parameters.${at}[${i}]`
    const name = nameOfField(field, node.version) || `field-${i}`
    if (Object.hasOwn(form.properties, name) || name === '__proto__') {
      report('parameter', path, `A second field with the name "${name}" was left out.`, field)
      continue
    }
    const mapped = mapField(field, name, (message) => report('parameter', path, message, field))
    // A setting that does not fit, such as a default that is no choice, must not keep the workflow from being saved.
    const { issues } = v.safeParse(formSchema, { properties: { [name]: mapped } })
    if (issues) report('parameter', path, `This field became a plain text: ${issues[0].message}.`, field)
    form.properties[name] = issues ? { type: 'string' } : mapped
    if (field.requiredField === true && mapped.show !== 'note' && mapped.show !== 'hidden')
      form.required.push(name)
  }
  if (given.length > MAX_FIELDS)
    report(
      'parameter',
      `parameters.${at}`,
      `A form has at most ${MAX_FIELDS} fields: the others were left out.`,
      given.length,
    )
  return form
}

/** The name under which n8n outputs a field. */
function nameOfField({ fieldName, fieldLabel, fieldType, elementName }: Field, version: number): string {
  const named = plainText(fieldName) ?? ''
  if (fieldType === 'html') return plainText(elementName) || ''
  const name =
    (version >= 2.4 || fieldType === 'hiddenField') && named !== '' ? named : (plainText(fieldLabel) ?? named)
  return still(name).slice(0, 100)
}

function mapField(field: Field, name: string, report: (message: string) => void): Field {
  const { fieldType: type = 'text', fieldLabel, defaultValue, placeholder } = field
  const label = still(plainText(fieldLabel) ?? '')
  const head = {
    ...(label !== '' && label !== name && type !== 'hiddenField' ? { title: label.slice(0, 1_000) } : {}),
    ...textEntry('placeholder', still(plainText(placeholder) ?? '').slice(0, 1_000)),
  }
  const first = still(plainText(defaultValue) ?? '')
  const start = first === '' ? {} : { default: first }
  const choices = [
    ...new Set(listObjects(Object(field.fieldOptions).values).map(({ option }) => String(option ?? ''))),
  ]
    .filter(Boolean)
    .slice(0, 200)
  const one = { enum: choices, ...(choices.includes(first) ? start : {}) }
  switch (type) {
    case 'text':
      return { type: 'string', ...head, ...start }
    case 'textarea':
      return { type: 'string', format: 'multiline', ...head, ...start }
    case 'email':
    case 'date':
      return { type: 'string', format: type, ...head, ...start }
    case 'password':
      return { type: 'string', format: 'password', ...head }
    case 'number':
      return {
        type: 'number',
        ...head,
        ...(first !== '' && Number.isFinite(Number(first)) ? { default: Number(first) } : {}),
      }
    case 'radio':
      return { ...head, ...one, show: 'radio' }
    case 'dropdown':
      return field.multiselect === true
        ? { type: 'array', ...head, enum: choices, show: 'checkboxes' }
        : { ...head, ...one }
    case 'checkbox':
      return {
        type: 'array',
        ...head,
        enum: choices,
        show: 'checkboxes',
        ...readCounts(field),
        ...readTicked(first, choices),
      }
    case 'file':
      return {
        type: 'file',
        ...head,
        ...(field.multipleFiles === false ? {} : { multiple: true }),
        ...readAccepted(field),
      }
    case 'hiddenField':
      return {
        type: 'string',
        show: 'hidden',
        ...textEntry('default', still(plainText(field.fieldValue) ?? '')),
      }
    case 'html': {
      report('n8n shows HTML here. Perdure shows its text only, and the item does not have it.')
      return { show: 'note', description: still(stripTags(String(field.html ?? ''))).slice(0, 1_000) }
    }
  }
  report(`Perdure has no field like n8n's "${type}": a plain text is asked for.`)
  return { type: 'string', ...head }
}

function readTicked(first: string, choices: string[]): Field {
  const ticked = first.split(',').map((one) => one.trim())
  const known = ticked.filter((one) => choices.includes(one))
  return known.length > 0 ? { default: known } : {}
}

function readCounts({
  limitSelection,
  numberOfSelections = 1,
  minSelections = 0,
  maxSelections = 1,
}: Field): Field {
  if (limitSelection === 'exact')
    return { minItems: Number(numberOfSelections), maxItems: Number(numberOfSelections) }
  return limitSelection === 'range'
    ? { minItems: Number(minSelections), maxItems: Number(maxSelections) }
    : {}
}

function readAccepted({ acceptFileTypes }: Field): Field {
  const list = String(plainText(acceptFileTypes) ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '' && one !== '*' && one !== '*/*')
    .map((one) => (/^[A-Za-z0-9]+$/.test(one) ? `.${one}` : one))
  return list.length > 0 ? { accept: list } : {}
}

function textEntry(key: string, text: string): Field {
  return text === '' ? {} : { [key]: text }
}

/** A text of n8n's that may have HTML, as the text that it shows. */
function readWords(value: unknown, report: ProblemReporter, path: string): string {
  if (isTemplate(value)) {
    report(
      'parameter',
      `parameters.${path}`,
      'An expression computes this text of a trigger, so it was left out.',
      value,
    )
    return ''
  }
  return dropTags(plainText(value) ?? '', report, path)
}

/** The same for a node, whose texts may have expressions. */
function keepWords(value: unknown, report: ProblemReporter, path: string): string {
  if (value === undefined || value === null) return ''
  const text = isTemplate(value) ? value : (plainText(value) ?? '')
  return keepText(dropTags(text, report, path))
}

function dropTags(text: string, report: ProblemReporter, path: string): string {
  if (!/<[a-z/!][^>]*>/i.test(text)) return text
  const message = 'n8n shows HTML here. Perdure shows the text of it only.'
  report('parameter', `parameters.${path}`, message, text)
  return stripTags(text)
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ', '#39': "'" }

function stripTags(html: string): string {
  return html
    .replace(/<!--[^>]*>|<(script|style)\b[^<]*<\/\1>/gi, '')
    .replace(/<br\s*\/?>|<\/(p|div|li|h[1-6]|tr)>/gi, '\n')
    .replace(/<[^<>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => ENTITIES[name]!)
    .replace(/\n\s*\n+/g, '\n')
    .trim()
}

/** A text of a trigger, in which nothing is an expression. */
function still(text: string): string {
  return text.replaceAll('{{', '{ {')
}
