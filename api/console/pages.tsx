import { type ComponentType, lazy } from 'react'
import type { IconName } from './kit/controls/icon.tsx'
import type { Role } from './shell/role.tsx'

/** The place of a page in the sidebar; a page without one is reached from others. */
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
  page('/', 'Home', () => import('./home/page.tsx'), 'HomePage', { group: 'Run', label: 'Home', icon: 'home', key: 'h' }),
  page('/start', 'New workflow', () => import('./workflows/templates/new.tsx'), 'StartPage'),

  // Run
  page('/executions', 'Executions', () => import('./executions/list.tsx'), 'ExecutionsPage', { group: 'Run', label: 'Executions', icon: 'executions', key: 'e' }),
  page('/executions/:id', 'Execution', () => import('./executions/page/execution.tsx'), 'ExecutionPage'),
  page('/approvals', 'Approvals', () => import('./executions/waits/list.tsx'), 'ApprovalsPage', { group: 'Run', label: 'Approvals', icon: 'approvals', key: 'a' }),
  page('/schedules', 'Schedules', () => import('./schedules/list.tsx'), 'SchedulesPage', { group: 'Run', label: 'Schedules', icon: 'schedules', key: 'd' }),
  page('/chat', 'Chat', () => import('./chat/list.tsx'), 'ChatsPage', { group: 'Run', label: 'Chat', icon: 'chat', least: 'OPERATOR', key: 'k' }),
  page('/chat/:id', 'Chat', () => import('./chat/chat.tsx'), 'ChatPage'),

  // Watch
  page('/monitoring', 'Monitoring', () => import('./monitoring/page.tsx'), 'MonitoringPage', { group: 'Watch', label: 'Monitoring', icon: 'monitoring', key: 'o' }),
  page('/evaluation', 'Evaluation', () => import('./evaluation/page.tsx'), 'EvaluationPage', { group: 'Watch', label: 'Evaluation', icon: 'evaluation' }),
  page('/evaluation/:workflowId/:runId', 'Batch', () => import('./evaluation/batch.tsx'), 'BatchPage'),
  page('/guardrails', 'Guardrails', () => import('./guardrails/page.tsx'), 'GuardrailsPage', { group: 'Watch', label: 'Guardrails', icon: 'guardrails' }),

  // Build
  page('/credentials', 'Credentials', () => import('./credentials/list.tsx'), 'CredentialsPage', { group: 'Build', label: 'Credentials', icon: 'credentials', least: 'BUILDER', key: 'c' }),
  page('/variables', 'Variables', () => import('./variables/list.tsx'), 'VariablesPage', { group: 'Build', label: 'Variables', icon: 'variables', key: 'v' }),
  page('/tables', 'Tables', () => import('./tables/list.tsx'), 'DataTablesPage', { group: 'Build', label: 'Tables', icon: 'tables', key: 'b' }),
  page('/connectors', 'Connectors', () => import('./connectors/list.tsx'), 'ConnectorsPage', { group: 'Build', label: 'Connectors', icon: 'link', key: 'n' }),
  page('/tables/:id', 'Table', () => import('./tables/page.tsx'), 'DataTablePage'),

  // Team
  page('/members', 'Members', () => import('./people/members.tsx'), 'MembersPage', { group: 'Team', label: 'Members', icon: 'members', least: 'ADMIN', key: 'm' }),
  page('/tokens', 'SDK tokens', () => import('./people/tokens.tsx'), 'TokensPage', { group: 'Team', label: 'Tokens', icon: 'tokens', least: 'ADMIN', key: 't' }),
  page('/widgets', 'Widgets', () => import('./widgets/page.tsx'), 'WidgetsPage', { group: 'Team', label: 'Widgets', icon: 'widgets', least: 'OPERATOR' }),
  page('/audit', 'Audit', () => import('./audit/page.tsx'), 'AuditPage', { group: 'Team', label: 'Audit', icon: 'audit', least: 'ADMIN', key: 'u' }),
  page('/settings', 'Settings', () => import('./settings/page.tsx'), 'SettingsPage', { group: 'Team', label: 'Settings', icon: 'settings', key: 's' }),

  // Elsewhere
  page('/confirm', 'Your e-mail', () => import('./people/confirm.tsx'), 'ConfirmPage'),

  // Workflows: their own pages come after those with a word in the place of the id.
  page('/workflows/new', 'New workflow', () => import('./editor/page.tsx'), 'NewWorkflowPage'),
  page('/workflows/:id/edit', 'Edit workflow', () => import('./editor/page.tsx'), 'EditWorkflowPage'),
  page('/workflows/import', 'Import a workflow', () => import('./workflows/transfer/import.tsx'), 'ImportPage'),
  page('/workflows/:id/versions', 'Versions', () => import('./workflows/versions/versions.tsx'), 'VersionsPage'),
  page('/workflows/:id', 'Workflow', () => import('./workflows/page.tsx'), 'WorkflowPage'),
  page('/workflows', 'Workflows', () => import('./workflows/list.tsx'), 'WorkflowsPage', { group: 'Build', label: 'Workflows', icon: 'workflows', key: 'w' }),
]

export const NAV_GROUPS = ['Run', 'Build', 'Watch', 'Team'] as const

/** In which order the entries of the groups stand, whatever the order of the table. */
const ORDER = [
  ...['Home', 'Executions', 'Approvals', 'Schedules', 'Chat'],
  ...['Workflows', 'Credentials', 'Connectors', 'Variables', 'Tables'],
  ...['Monitoring', 'Evaluation', 'Guardrails'],
  ...['Members', 'Tokens', 'Widgets', 'Settings', 'Audit'],
]

/** The pages of the sidebar, in its order. */
export const NAV: readonly (Page & { nav: Nav })[] = PAGES.filter(
  (one): one is Page & { nav: Nav } => one.nav !== undefined,
).sort((a, b) => ORDER.indexOf(a.nav.label) - ORDER.indexOf(b.nav.label))
