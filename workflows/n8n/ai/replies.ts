import type { SourceLink, SourceNode, SourceWorkflow } from '../document.ts'

const REPLYING = new Set(['agent', 'chainLlm', 'openAi'])

/**
 * The nodes whose text could be the reply in a chat: those that a chat leads to and that lead to no other such. Undefined
 * without a chat.
 */
export function findReplies({
  nodes,
  links,
  attachments,
}: Pick<SourceWorkflow, 'nodes' | 'links' | 'attachments'>):
  | { trigger: string; replies: string[] }
  | undefined {
  const outward = Map.groupBy(links, ({ from }) => from)
  const chats = nodes.filter(({ type, disabled }) => !disabled && /^(?:manualC|c)hatTrigger$/.test(type))
  const [chat] = chats
  if (!chat) return undefined
  const reached = findBehind(
    chats.map(({ name }) => name),
    outward,
  )
  const replies = ({ type, disabled, name }: SourceNode) =>
    REPLYING.has(type) &&
    !disabled &&
    reached.has(name) &&
    !attachments.some(({ to, kind }) => to === name && kind === 'ai_outputParser')
  const found = nodes.filter(replies).map(({ name }) => name)
  const last = found.filter((name) => {
    const later = findBehind([name], outward)
    return !found.some((other) => other !== name && later.has(other))
  })
  return { trigger: chat.name, replies: last }
}

function findBehind(names: string[], outward: Map<string, SourceLink[]>): Set<string> {
  const found = new Set(names)
  for (const name of found) for (const { to } of outward.get(name) ?? []) found.add(to)
  return found
}
