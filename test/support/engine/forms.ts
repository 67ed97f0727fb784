import type { Host } from '../running.ts'

/** A browser without scripts that fills in the forms of a service. */
export function useForms(host: Host) {
  /** Opens a page. Redirects are not followed. */
  const open = (path: string, cookie?: string) =>
    host.request(path, { as: cookie ?? '', redirect: 'manual' } as RequestInit)

  /** Sends what a browser would send of a page without files. */
  function send(
    path: string,
    fields: Record<string, string | string[]>,
    headers: Record<string, string> = {},
  ) {
    const body = new URLSearchParams()
    for (const [name, value] of Object.entries(fields))
      for (const one of [value].flat()) body.append(name, one)
    return host.request(path, {
      method: 'POST',
      as: '',
      body: body.toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    } as RequestInit)
  }

  function sendParts(path: string, parts: [name: string, value: string | File][]) {
    const body = new FormData()
    for (const [name, value] of parts) body.append(name, value)
    return host.request(path, { method: 'POST', as: '', body } as RequestInit)
  }

  /** Looks again at the page that goes on by itself, until it leads on (its address), or is the last one (its HTML). */
  async function follow(path: string): Promise<{ to?: string; page?: string }> {
    for (let at = path; ; ) {
      const response = await open(at)
      if (response.status === 303) return { to: response.headers.get('location')! }
      const again = response.headers.get('refresh')?.match(/url=(\/.*)$/)?.[1]
      if (!again) return { page: await response.text() }
      at = again
    }
  }

  return { open, send, sendParts, follow }
}

/** The value of the hidden field by which a page is known. */
export function submissionOf(page: string): string {
  return /name="_submission" value="([^"]+)"/.exec(page)![1]!
}
