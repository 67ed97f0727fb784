import { type ComponentType, lazy } from 'react'
import type { IconName } from './kit/icon.tsx'
import type { Role } from './shell/role.tsx'

/** Where a page stands in the sidebar; a page without it is reached from others. */
type Nav = {
  group: 'Build' | 'Run' | 'Watch' | 'Team'
  label: string
  icon: IconName
  /** Who is offered it; without it, every member. */
  least?: Role
  /** The key after g that goes there. */
  key?: string
}

export type Page = { path: string; title: string; show: ComponentType; nav?: Nav }

type Named<Name extends string> = Record<Name, ComponentType>

/** One page: its parameters (`:id`) are read with wouter's `useParams`. What it imports is loaded with it. */
function page<Name extends string>(
  path: string,
  title: string,
  load: () => Promise<Named<Name>>,
  name: Name,
  nav?: Nav,
): Page {
  const show = lazy(async (): Promise<{ default: ComponentType }> => ({ default: (await load())[name] }))
  return { path, title, show, ...(nav ? { nav } : {}) }
}

/** Every page there is. The first one whose path fits is shown; an unknown address leads to the first one with a nav. */
// biome-ignore format: one line a page
export const PAGES: readonly Page[] = [
  // Run
  page('/executions', 'Executions', () => import('./executions/list.tsx'), 'ExecutionsPage', { group: 'Run', label: 'Executions', icon: 'executions', key: 'e' }),
  page('/approvals', 'Approvals', () => import('./approvals/list.tsx'), 'ApprovalsPage', { group: 'Run', label: 'Approvals', icon: 'approvals', key: 'a' }),
  page('/chat', 'Chat', () => import('./chat/list.tsx'), 'ChatsPage', { group: 'Run', label: 'Chat', icon: 'chat', least: 'OPERATOR', key: 'c' }),
  page('/chat/:id', 'Chat', () => import('./chat/chat.tsx'), 'ChatPage'),

  // Watch
  page('/monitoring', 'Monitoring', () => import('./monitoring/page.tsx'), 'MonitoringPage', { group: 'Watch', label: 'Monitoring', icon: 'monitoring', key: 'm' }),
  page('/evaluation', 'Evaluation', () => import('./evaluation/page.tsx'), 'EvaluationPage', { group: 'Watch', label: 'Evaluation', icon: 'evaluation' }),
  page('/evaluation/:workflowId/:runId', 'Batch', () => import('./evaluation/batch.tsx'), 'BatchPage'),
  page('/guardrails', 'Guardrails', () => import('./guardrails/page.tsx'), 'GuardrailsPage', { group: 'Watch', label: 'Guardrails', icon: 'guardrails' }),

  // Team
  page('/widgets', 'Widgets', () => import('./widgets/page.tsx'), 'WidgetsPage', { group: 'Team', label: 'Widgets', icon: 'widgets', least: 'OPERATOR' }),

  // Elsewhere
  page('/confirm', 'Your e-mail', () => import('./people/confirm.tsx'), 'ConfirmPage'),
]

export const GROUPS = ['Run', 'Build', 'Watch', 'Team'] as const

/** In which order the entries of the groups stand, whatever the order of the table. */
const ORDER = [
  ...['Home', 'Executions', 'Approvals', 'Schedules', 'Chat'],
  ...['Workflows', 'Credentials', 'Connectors', 'Variables'],
  ...['Monitoring', 'Evaluation', 'Guardrails'],
  ...['Members', 'Tokens', 'Widgets', 'Settings', 'Audit'],
]

/** The pages of the sidebar, in its order. */
export const NAV: readonly (Page & { nav: Nav })[] = PAGES.filter(
  (one): one is Page & { nav: Nav } => one.nav !== undefined,
).sort((a, b) => ORDER.indexOf(a.nav.label) - ORDER.indexOf(b.nav.label))
