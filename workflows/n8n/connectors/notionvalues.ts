import { type Fields, objectOf } from '../ai/asking.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText, writeCode } from '../texts.ts'

/** The values of properties in the words of Notion, by their names. */
export function readProperties(given: unknown, zone: string): Fields {
  if (isTemplate(given)) throw new Error('an expression gives all of its properties')
  const { propertyValues } = objectOf(given)
  if (isTemplate(propertyValues)) throw new Error('an expression gives all of its properties')
  const entries = listObjects(propertyValues).map((one) => {
    const { name, type } = readKey(one.key)
    return [name, readProperty(one, type, zone)] as const
  })
  return Object.fromEntries(entries)
}

/** A property's name and type, which n8n writes as one text. */
export function readKey(given: unknown): { name: string; type: string } {
  if (isTemplate(given)) throw new Error('an expression names a property: choose it by its name')
  const key = plainText(given) ?? ''
  const at = key.lastIndexOf('|')
  if (at < 0) throw new Error('it names a property without its type')
  return { name: key.slice(0, at), type: key.slice(at + 1) }
}

const code = (given: unknown) =>
  typeof given === 'string' ? writeCode(given) : JSON.stringify(given ?? null)
const write = (body: string, given: unknown) => `={{ (${body})(${code(given)}\n) }}`
const LIST =
  "(Array.isArray(given) ? given : String(given ?? '').split(',')).map(one => String(one).trim()).filter(one => one !== '')"
const UUID = '/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i'

function readProperty(one: Fields, type: string, zone: string): unknown {
  switch (type) {
    case 'rich_text':
      return { rich_text: one.richText === true ? readTexts(one.text) : plain(one.textContent) }
    case 'title':
      return { title: plain(one.title) }
    case 'number':
      return { number: keepTexts(one.numberValue ?? 0) }
    case 'url':
      if (one.ignoreIfEmpty === true || isTemplate(one.ignoreIfEmpty))
        throw new Error('it leaves out a URL that is empty: put an IF_ELSE before it')
      return { url: keepTexts(one.urlValue ?? '') }
    case 'checkbox':
      return { checkbox: keepTexts(one.checkboxValue ?? false) }
    case 'email':
      return { email: keepTexts(one.emailValue ?? '') }
    case 'phone_number':
      return { phone_number: keepTexts(one.phoneValue ?? '') }
    case 'relation':
      return {
        relation: write(
          `given => ${LIST}.flatMap(one => one.split(',')).map(one => ({ id: one.trim() }))`,
          one.relationValue,
        ),
      }
    case 'multi_select':
      return {
        multi_select: write(
          `given => ${LIST}.map(one => ${UUID}.test(one) ? ({ id: one }) : ({ name: one }))`,
          one.multiSelectValue,
        ),
      }
    case 'people':
      return { people: write(`given => ${LIST}.map(one => ({ id: one }))`, one.peopleValue) }
    case 'select':
      return {
        select: write(
          "given => given === null || given === undefined || given === '' ? null : ({ name: given })",
          one.selectValue,
        ),
      }
    case 'status':
      return { status: { name: keepText(one.statusValue) } }
    case 'date':
      return { date: readDates(one, zone) }
    case 'files': {
      const files = listObjects(objectOf(one.fileUrls).fileUrl)
      return {
        files: files.map(({ name, url }) => ({
          name: keepText(name),
          type: 'external',
          external: { url: keepText(url) },
        })),
      }
    }
  }
  throw new Error(`it sets a property of the type "${type}"`)
}

const plain = (content: unknown) => [{ text: { content: keepText(content) } }]

/** A date in the zone of the workflow, or with another one; without its time unless that is set. */
function readDates(one: Fields, own: string): unknown {
  const { range, includeTime = true, timezone = 'default', date, dateStart, dateEnd } = one
  if ([range, includeTime, timezone].some(isTemplate))
    throw new Error('an expression says what kind of date it is')
  const zone = JSON.stringify(timezone === 'default' ? own : timezone)
  const shown = includeTime === true ? 'toISO(({ suppressMilliseconds: true }))' : "toFormat('yyyy-MM-dd')"
  const at = (given: unknown) =>
    `(given => (read => read.isValid ? read.${shown} : String(given))(DateTime.isDateTime(given) ? given.setZone(${zone}) : ` +
    `DateTime.fromISO(given instanceof Date ? given.toISOString() : String(given).trim().replace(' ', 'T'), ({ zone: ${zone} }))))(${code(given)}\n)`
  if (range === true) return { start: `={{ ${at(dateStart)} }}`, end: `={{ ${at(dateEnd)} }}` }
  return `={{ (given => given === '' || given === null || given === undefined ? null : ({ start: ${at(date)}, end: null }))(${code(date)}\n) }}`
}

/** Pieces of text with their looks. */
function readTexts(given: unknown): unknown[] {
  return listObjects(objectOf(given).text).map((one) => {
    const { textType = 'text', isLink, textLink, annotationUi, expression } = one
    const looks =
      Object.keys(objectOf(annotationUi)).length > 0 ? { annotations: keepTexts(annotationUi) } : {}
    if (textType === 'equation')
      return { type: 'equation', equation: { expression: keepText(expression) }, ...looks }
    if (textType !== 'text') throw new Error('it mentions someone or something in a text')
    const link = isLink === true && textLink ? { link: { url: keepText(textLink) } } : {}
    return { type: 'text', text: { content: keepText(one.text), ...link }, ...looks }
  })
}

/** The blocks of a node in the words of Notion. */
export function readBlocks(given: unknown): unknown[] {
  if (isTemplate(given) || isTemplate(objectOf(given).blockValues))
    throw new Error('an expression gives all of its blocks')
  return listObjects(objectOf(given).blockValues).map((one) => {
    const { type = 'paragraph', richText, textContent, text, checked = false, url } = one
    if (isTemplate(type)) throw new Error('an expression says what kind of block it is')
    const kind = String(type)
    if (kind === 'image')
      return { object: 'block', type: kind, image: { type: 'external', external: { url: keepText(url) } } }
    const texts = richText === true ? readTexts(text) : plain(textContent)
    return {
      object: 'block',
      type: kind,
      [kind]: { ...(kind === 'to_do' ? { checked: keepTexts(checked) } : {}), text: texts },
    }
  })
}

const EMPTY = ['is_empty', 'is_not_empty']
const SPANS = ['past_week', 'past_month', 'past_year', 'next_week', 'next_month', 'next_year']
const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** A condition in the words of Notion. */
export function readFilterCondition(one: Fields, zone: string): unknown {
  const { name, type } = readKey(one.key)
  const condition = plainText(one.condition)
  if (isTemplate(one.condition) || !condition)
    throw new Error('an expression gives a condition, or nothing does')
  if (type === 'formula' || one.type === 'formula') throw new Error('it filters by a formula')
  const kind = { rich_text: 'text', phone_number: 'phone', boolean: 'checkbox' }[type] ?? type
  const value = type === 'last_edited_time' ? one.lastEditedTime : one[`${camel(type)}Value`]
  const isDate = type === 'date'
  const wanted = EMPTY.includes(condition)
    ? true
    : SPANS.includes(condition)
      ? {}
      : isDate
        ? `={{ DateTime.fromISO(String(${code(one.date)}), ({ zone: ${JSON.stringify(zone)} })).toUTC().toISO(({ suppressMilliseconds: true })) }}`
        : keepTexts(value ?? '')
  return { property: name, [kind]: { [condition]: wanted } }
}
