import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { ExecutionItem } from './data.ts'

type Starter = NonNullable<ExecutionItem['startedBy']>

const THINGS: Partial<Record<Starter['kind'], string>> = {
  VISITOR: 'a visitor of a widget',
  WEBHOOK: 'its webhook',
  FORM: 'its form',
  SCHEDULE: 'its schedule',
  FAILURE: 'the failure of another workflow',
  EVALUATION: 'an evaluation',
  PLAYBOOK: 'a playbook',
}

/** Who or what started an execution, if the API says so: null where it does not, or where its trigger says it already. */
export function tellStarter(starter: Starter | null, trigger: string): ReactNode {
  if (!starter) return null
  const { kind, id, name } = starter
  if (kind === 'EXECUTION')
    return id && <Link href={`/executions/${id}`}>{name ?? `execution ${id.slice(-12)}`}</Link>
  if (kind === 'USER') return name ?? 'a person who has been deleted'
  if (kind === 'SDK_TOKEN') return name === null ? 'a token that has been deleted' : `token ${name}`
  return kind === trigger ? null : THINGS[kind]
}
