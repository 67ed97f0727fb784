import { isObject, setOwn } from '../../../workflows/json.ts'
import { createPacer } from '../../expressions/pace.ts'

type Fields = Record<string, unknown>

/** What the actions of Notion work out. */
export const NOTION_MAKERS = { notionPages: simplifyAll, notionBlocks: simplifyBlocks }

/** Pages and databases as `{id, name, url}`, those of databases with the values of their properties as property_name. */
async function simplifyAll({ found }: { found: unknown }): Promise<unknown> {
  if (!Array.isArray(found)) return simplifyOne(found)
  const pace = createPacer()
  const all: unknown[] = []
  for (const one of found) {
    await pace()
    all.push(simplifyOne(one))
  }
  return all
}

function simplifyOne(given: unknown): unknown {
  if (!isObject(given)) return given
  const { object, id, url, title, properties, parent } = given
  if (object !== 'page') return { id, name: joinPlain(title), url: url ?? null }
  const all = isObject(properties) ? properties : {}
  const own = Object.values(all).find((one) => Object(one).type === 'title')
  const base = { id, name: joinPlain(Object(own ?? all.title).title, true), url: url ?? null }
  const { type } = Object(parent)
  if (type === 'page_id' || type === 'workspace') return base
  const made: Fields = { ...base }
  for (const [name, property] of Object.entries(all)) {
    const value = readProperty(property)
    if (value !== undefined) setOwn(made, `property_${nameKey(name)}`, value)
  }
  return made
}

function joinPlain(texts: unknown, isFirst = true): string {
  const list = Array.isArray(texts) ? texts.map((one) => String(Object(one).plain_text ?? '')) : []
  return isFirst ? (list[0] ?? '') : list.join('')
}

/** A name in small letters with _ between its words. Letters beyond ASCII end a word. */
function nameKey(name: string): string {
  const words = name
    .replace(/[^\x20-\x7e]/g, ' ')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z\d]+/)
  return words
    .filter((one) => one !== '')
    .join('_')
    .toLowerCase()
}

const namesOf = (list: unknown[], key: string) => list.map((one) => Object(one)[key] ?? {})

/** The value of a property; undefined for a type that has none that is simple. */
function readProperty(property: unknown): unknown {
  const all = Object(property)
  const { type } = all
  const value = all[type]
  switch (type) {
    case 'text':
      return all.plain_text
    case 'rich_text':
    case 'title':
      return joinPlain(value, false)
    case 'created_by':
    case 'last_edited_by':
    case 'select':
      return value ? Object(value).name : null
    case 'status':
      return Object(value).name
    case 'people':
      return Array.isArray(value) ? value.map((one) => Object(Object(one).person).email ?? {}) : value
    case 'multi_select':
      return Array.isArray(value) ? namesOf(value, 'name') : undefined
    case 'relation':
      return Array.isArray(value) ? namesOf(value, 'id') : Object(value).database_id
    case 'formula':
      return Object(value)[Object(value).type]
    case 'rollup':
      return readRollup(Object(value))
    case 'files':
      return Array.isArray(value) ? value.map((one) => Object(Object(one)[Object(one).type]).url) : undefined
    case 'url':
    case 'created_time':
    case 'last_edited_time':
    case 'checkbox':
    case 'number':
    case 'email':
    case 'phone_number':
    case 'date':
      return value
  }
  return undefined
}

function readRollup(rollup: Fields): unknown {
  const how = String(rollup.function ?? '')
  if (how.startsWith('count') || how.includes('empty'))
    return how.includes('percent') ? Number(rollup.number) * 100 : rollup.number
  if (!how.startsWith('show') || !Array.isArray(rollup.array)) return undefined
  const values = rollup.array.flatMap(readProperty)
  return how === 'show_unique' ? [...new Set(values)] : values
}

/** Blocks with their text as `content`, and the page or block that they were read from as `root_id`. */
async function simplifyBlocks({ found, root }: { found: unknown[]; root: string }): Promise<unknown[]> {
  const pace = createPacer()
  const all: unknown[] = []
  for (const one of found) {
    await pace()
    const { created_time: _, last_edited_time: __, created_by: ___, ...block } = Object(one) as Fields
    const type = String(block.type)
    const own = Object(block[type])
    const texts = own.text ?? own.rich_text
    const isTitled = type === 'child_page' || type === 'child_database'
    const content = isTitled ? own.title : Array.isArray(texts) ? joinPlain(texts, false) : undefined
    if (content === undefined) all.push({ ...block, root_id: root })
    else {
      const { [type]: ____, ...rest } = block
      all.push({ ...rest, root_id: root, content })
    }
  }
  return all
}
