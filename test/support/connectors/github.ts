import { createHash } from 'node:crypto'
import type { Asked, Reply } from './vendor.ts'

const blobOf = (bytes: Buffer) =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')

/** A repository in memory whose files answer as GitHub's do: a text for each path, and the messages of its commits. */
export function createRepository(given: Record<string, string> = {}) {
  const files = new Map(Object.entries(given).map(([path, text]) => [path, Buffer.from(text)]))
  const commits: string[] = []
  const say = (status: number, message: string): Reply => ({ status, json: { message } })
  const show = (path: string) => {
    const bytes = files.get(path)!
    const content = bytes.toString('base64')
    return {
      type: 'file',
      name: path.split('/').at(-1),
      path,
      sha: blobOf(bytes),
      encoding: 'base64',
      content,
    }
  }
  const commit = (message: unknown) => {
    commits.push(String(message))
    return { sha: `c${commits.length}`, node_id: 'n', html_url: 'h', url: 'u', message, parents: [] }
  }

  function answer({ method, path, headers, json }: Asked): Reply {
    if (path.endsWith('/commits')) {
      const { message, url, ...last } = { ...commit(commits.pop() ?? ''), committer: { name: 'Ada' } }
      return { json: [{ ...last, url: 'of-repo', commit: { message, url, committer: { name: 'Ada' } } }] }
    }
    const at = decodeURIComponent(/\/contents\/?(.*)$/.exec(path)?.[1] ?? '')
    const inside = [...files.keys()].filter((one) => one !== at && one.startsWith(at === '' ? '' : `${at}/`))
    const there = files.get(at)
    if (method === 'GET') {
      if (!there) return inside.length > 0 ? { json: inside.map(show) } : say(404, 'Not Found')
      if (String(headers.accept).includes('raw'))
        return { headers: { 'content-type': 'application/vnd.github.raw+json; charset=utf-8' }, bytes: there }
      return { json: show(at) }
    }
    if (there && json.sha === undefined) return say(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if (there && json.sha !== blobOf(there)) return say(409, `${at} does not match ${json.sha}`)
    if (!there && (json.sha !== undefined || method === 'DELETE'))
      return say(method === 'DELETE' ? 404 : 409, 'no such file')
    if (method === 'DELETE') {
      files.delete(at)
      return { json: { content: null, commit: commit(json.message) } }
    }
    files.set(at, Buffer.from(String(json.content), 'base64'))
    return { status: there ? 200 : 201, json: { content: show(at), commit: commit(json.message) } }
  }

  return { answer, commits, read: (path: string) => files.get(path)?.toString(), write: files }
}
