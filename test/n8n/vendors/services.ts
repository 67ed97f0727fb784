import type { Answer, Asked } from '../mock.ts'
import type { VendorAsking } from './vendors.ts'

/** How many at once, and what says only what is there without it. */
const IDLE = new Set([
  'per_page',
  'maxResults',
  'timeZone',
  'id',
  'supportsAllDrives',
  'fields',
  'conferenceDataVersion',
])

/** What GitHub or one of Google's services was asked: with times as instants, and without marks of n8n or Perdure. */
export function readServiceAsking({ path, query, body, method }: Asked): VendorAsking {
  const [, , vendor, ...rest] = path.split('/')
  const json = body === '' ? {} : JSON.parse(body)
  const given = { ...Object.fromEntries(query), ...json }
  const entries = Object.entries(given).filter(
    ([key, value]) =>
      !IDLE.has(key) && value !== 'false' && value !== '' && !(Array.isArray(value) && value.length === 0),
  )
  const plain = JSON.stringify(Object.fromEntries(entries), (key, value) => {
    if (key === 'conferenceData') return true
    if (typeof value === 'number') return String(value)
    return typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
      ? new Date(value).toISOString()
      : value
  })
  return {
    asked: `${vendor}: ${method} ${decodeURIComponent(rest.join('/')).replace(/\/$/, '')}`,
    body: JSON.parse(plain),
  }
}

const EVENT = {
  kind: 'calendar#event',
  id: 'e1',
  summary: 'Plan',
  start: { dateTime: '2026-02-03T10:00:00Z' },
}
const FILE = {
  type: 'file',
  name: 'f.txt',
  path: 'a/f.txt',
  sha: 's1',
  encoding: 'base64',
  content: 'aGVsbG8=',
}
const paragraph = (content: string) => ({ paragraph: { elements: [{ textRun: { content } }] } })

export function answerService({ path, body, method }: Asked): Answer {
  if (body.includes('refuse') || path.includes('refuse'))
    return { status: 404, json: { message: 'Not Found' } }
  return path.startsWith('/vendors/github/') ? answerGithub(path, method) : answerGoogle(path, body, method)
}

function answerGithub(path: string, method: string): Answer {
  if (path.includes('/contents')) {
    if (method !== 'GET') return { json: { content: method === 'PUT' ? FILE : null, commit: { sha: 'c1' } } }
    return { json: /contents\/?$/.test(path) ? [FILE, { ...FILE, name: 'g.txt' }] : FILE }
  }
  const isList = method === 'GET' && /\/(issues|releases|repos|pulls|reviews)$/.test(path)
  return { json: isList ? [{ id: 1 }, { id: 2 }] : { id: 1, number: 4, title: 'T' } }
}

function answerGoogle(path: string, body: string, method: string): Answer {
  if (path.endsWith('/freeBusy')) {
    const { items, timeMin, timeMax } = JSON.parse(body)
    const busy = [{ start: '2026-02-03T10:00:00Z', end: '2026-02-03T11:00:00Z' }]
    return {
      json: {
        kind: 'calendar#freeBusy',
        timeMin: 'a',
        timeMax: 'b',
        calendars: { [items[0].id]: { busy, timeMin: timeMin && undefined, timeMax: timeMax && undefined } },
      },
    }
  }
  if (path.endsWith(':batchUpdate'))
    return {
      json: {
        documentId: path.split('/').at(-1)?.split(':')[0],
        replies: [{ replaceAllText: { occurrencesChanged: 2 } }, {}],
      },
    }
  if (path.includes('/documents/'))
    return {
      json: {
        documentId: 'd',
        body: { content: [{ sectionBreak: {} }, paragraph('One\n'), paragraph('Two\n')] },
      },
    }
  if (method === 'DELETE') return { status: 204, text: '' }
  if (method === 'GET' && path.endsWith('/events'))
    return { json: { items: [EVENT, { ...EVENT, id: 'e2' }] } }
  return { json: path.includes('/calendar/') ? EVENT : { kind: 'drive#file', id: 'f1' } }
}
