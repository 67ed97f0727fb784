import type { InferRequestType } from 'hono/client'
import type { api } from '../../data/client.ts'
import type { IconName } from '../../kit/controls/icon.tsx'

type NewWorkflow = InferRequestType<typeof api.api.workflows.$post>['json']
export type TemplateGraph = Omit<NewWorkflow, 'teamId'>

export type Template = {
  id: string
  name: string
  icon: IconName
  text: string
  /** The next step after it is taken, in a few words. */
  next: string
  /** The type of the credential that it needs; it needs no data, so it is made where the team has none. */
  asks?: string
  /** `base` is the address of the service, without a slash at its end. */
  make: (given: { base: string; credentialId: string }) => TemplateGraph
  /** How its first execution is started: by hand, by a call of its webhook, by a message of a chat. */
  first:
    | { by: 'hand'; data: Record<string, unknown> }
    | { by: 'webhook'; path: string; body: Record<string, unknown> }
    | { by: 'chat'; message: string }
}

/** `a -> b`, `a:handle -> b` */
export function edges(...arrows: string[]) {
  return arrows.map((arrow) => {
    const [from = '', target = ''] = arrow.split(' -> ')
    const [source = '', sourceHandle] = from.split(':')
    return sourceHandle ? { source, sourceHandle, target } : { source, target }
  })
}
