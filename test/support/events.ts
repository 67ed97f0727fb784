export type Event = { id: string; event: string; data: Record<string, unknown> }

/** Reads a server-sent event stream as an EventSource does. `comments` counts its comments. */
export function readEvents(response: Response) {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let comments = 0
  const ready: Event[] = []

  async function next(): Promise<Event | undefined> {
    while (ready.length === 0) {
      const { done, value } = await reader.read()
      if (done) return undefined
      const blocks = `${rest}${value}`.split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s)))
        if (block.startsWith(':')) comments++
        else if (fields.event) ready.push({ ...fields, data: JSON.parse(fields.data) } as Event)
      }
    }
    return ready.shift()
  }

  async function all(): Promise<Event[]> {
    const events: Event[] = []
    for (let one = await next(); one; one = await next()) events.push(one)
    return events
  }
  return { next, all, comments: () => comments, cancel: () => reader.cancel() }
}

/** Shortens an event to a string such as `execution RUNNING`, `node a SUCCESS` or `end SUCCESS`. */
export const brief = ({ event, data }: Event) => [event, data.nodeId, data.status].filter(Boolean).join(' ')
