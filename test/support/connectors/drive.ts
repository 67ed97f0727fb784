import type { Asked, Reply } from './vendor.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
type Stored = Record<string, any> & { id: string; content: string; type: string }

/** A Drive in memory, which answers as Google's API does for the requests that are made here. */
export function createDrive(given: Partial<Stored>[] = []) {
  const files = new Map<string, Stored>()
  let made = 0
  for (const one of given) add(one)

  function add({
    id = `made-${++made}`,
    content = '',
    type = 'text/plain',
    ...rest
  }: Partial<Stored>): Stored {
    const stored = { kind: 'drive#file', id, name: 'Untitled', parents: ['root'], ...rest, content, type }
    files.set(id, stored)
    return stored
  }
  const say = (file: Stored | undefined, wanted = ''): Reply => {
    if (!file) return { status: 404, json: { error: { code: 404, message: 'File not found' } } }
    const { content: _, type: __, ...about } = file
    const names = wanted === '*' ? Object.keys(about) : (wanted || 'kind,id,name,mimeType').split(/, */)
    return { json: Object.fromEntries(names.flatMap((name) => (name in about ? [[name, about[name]]] : []))) }
  }

  function answer({
    method,
    path,
    query,
    json,
    text,
    headers,
  }: Pick<Asked, 'method' | 'path' | 'query' | 'json' | 'text' | 'headers'>): Reply {
    const [, upload, id = '', verb = ''] =
      /^(\/upload)?\/drive\/v3\/files(?:\/([^/]+))?(?:\/(\w+))?$/.exec(path) ?? []
    const fields = query.get('fields') ?? ''
    if (id === 'generateIds') return { json: { ids: [`id-${++made}`] } }
    if (id === '') {
      if (method === 'POST') {
        if (typeof json.id === 'string' && files.has(json.id))
          return {
            status: 409,
            json: { error: { code: 409, message: 'A file already exists with the provided ID.' } },
          }
        return say(add(json), fields)
      }
      const all = [...files.values()]
      const size = Number(query.get('pageSize') ?? 100)
      const from = Number(query.get('pageToken') ?? 0)
      const shown = all.slice(from, from + size).map((file) => {
        const reply = say(file, /files\((.*)\)/.exec(fields)?.[1])
        return reply === 'cut' ? undefined : reply.json
      })
      return {
        json: { files: shown, ...(from + size < all.length ? { nextPageToken: String(from + size) } : {}) },
      }
    }
    const file = files.get(id)
    if (!file) return say(undefined)
    if (verb === 'permissions') return { json: { kind: 'drive#permission', id: 'p1', ...json } }
    if (verb === 'copy')
      return say(add({ ...file, id: 'copy', name: `Copy of ${file.name}`, ...json }), fields)
    if (verb === 'export' || query.get('alt') === 'media')
      return {
        headers: { 'content-type': query.get('mimeType') ?? file.type },
        bytes: Buffer.from(verb === 'export' ? `exported ${file.content}` : file.content),
      }
    if (method === 'DELETE') {
      files.delete(id)
      return { status: 204 }
    }
    if (method === 'PATCH') {
      if (upload) Object.assign(file, { content: text, type: headers['content-type'] })
      else Object.assign(file, json)
      const [added, removed] = [query.get('addParents'), query.get('removeParents')]
      if (added !== null)
        file.parents = [...file.parents.filter((one: string) => !removed?.split(',').includes(one)), added]
    }
    return say(file, fields)
  }

  return { answer, files }
}
