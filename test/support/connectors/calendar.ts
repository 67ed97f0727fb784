import type { Asked, Reply } from './vendor.ts'

type Event = Record<string, unknown> & { id: string; attendees?: { email: string }[] }

/** A calendar in memory that answers as Google's does, and its events by their ids. */
export function createCalendar(given: Event[] = []) {
  const events = new Map(given.map((event) => [event.id, event]))
  const say = (code: number, message: string): Reply => ({ status: code, json: { error: { code, message } } })

  function answer({ method, path, query, json }: Asked): Reply {
    if (path.endsWith('/freeBusy')) {
      const [{ id }] = json.items as [{ id: string }]
      const found = id.includes('none')
        ? { errors: [{ domain: 'global', reason: 'notFound' }] }
        : { busy: id.includes('free') ? [] : [{ start: json.timeMin, end: json.timeMax }] }
      return {
        json: {
          kind: 'calendar#freeBusy',
          timeMin: json.timeMin,
          timeMax: json.timeMax,
          calendars: { [id]: found },
        },
      }
    }
    if (path.endsWith('/calendarList')) return { json: { items: [{ id: 'work', summary: 'Work' }] } }
    const [, id = '', verb] = /\/events(?:\/([^/]+))?(?:\/(\w+))?$/.exec(path) ?? []
    if (id === '' && method === 'POST') {
      const made = { kind: 'calendar#event', status: 'confirmed', ...json, id: String(json.id ?? 'made') }
      if (events.has(made.id)) return say(409, 'The requested identifier already exists.')
      if (!/^[0-9a-v]{5,1024}$/.test(made.id)) return say(400, 'Invalid resource id value.')
      events.set(made.id, made)
      return { json: made }
    }
    if (id === '' || verb === 'instances') {
      const all = [...events.values()]
      const size = Number(query.get('maxResults'))
      const from = Number(query.get('pageToken') ?? 0)
      const next = from + size < all.length ? { nextPageToken: String(from + size) } : {}
      return { json: { kind: 'calendar#events', items: all.slice(from, from + size), ...next } }
    }
    const event = events.get(decodeURIComponent(id))
    if (!event) return say(method === 'DELETE' ? 410 : 404, 'Not Found')
    if (method === 'DELETE') {
      events.delete(event.id)
      return { status: 204 }
    }
    if (method === 'PATCH') events.set(event.id, { ...event, ...json })
    return { json: events.get(event.id) }
  }

  return { answer, events }
}
