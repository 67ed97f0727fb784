import { useState } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { PageHeader } from '../kit/header.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Loaded } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Managed } from '../kit/tables/managed.tsx'
import type { Column } from '../kit/tables/table.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { WorkflowName } from '../workflows/name.tsx'
import { deleteWidget, rotateWidgetKey, updateWidget, useWidgets, type Widget } from './data.ts'
import { EmbedDialog } from './embed.tsx'
import { WidgetDialog } from './widget.tsx'

/** Chats with the team's agents on other people's pages. */
export function WidgetsPage() {
  const { teamId } = useTeam()
  const mayChange = useRole()('BUILDER')
  const confirm = useConfirm()
  const found = useWidgets(teamId)
  const [edited, setEdited] = useState<Widget | 'new' | null>(null)
  const [embedded, setEmbedded] = useState<Widget | null>(null)

  const rotate = ({ id, name }: Widget) =>
    confirm({
      title: `Give ${name} another key?`,
      text: 'Pages with the old key show no widget any more, and their visitors cannot go on.',
      label: 'Make a new key',
      danger: true,
      work: async () => setEmbedded(await rotateWidgetKey(id)),
    })
  const remove = ({ id, name }: Widget) =>
    confirm({
      title: `Delete ${name}?`,
      text: 'All that its visitors have said, and the executions that replied, are deleted. This cannot be undone.',
      label: 'Delete the widget',
      danger: true,
      work: () => deleteWidget(id),
    })
  return (
    <>
      <PageHeader title="Widgets" />
      <Loaded query={found}>
        {(widgets) => (
          <div className="stack">
            <Managed
              label="Widgets"
              rows={widgets}
              mayChange={mayChange}
              empty={{
                title: 'No widgets',
                text: 'A widget is a chat with an agent workflow that visitors of your pages can use without an account.',
              }}
              add={{ label: 'New widget', onClick: () => setEdited('new') }}
              columns={COLUMNS}
              onOff={{
                heading: 'Enabled',
                verb: 'Enable',
                isOn: ({ enabled }) => enabled,
                change: ({ id }, enabled) => updateWidget(id, { enabled }),
                said: ({ name }, on) =>
                  on ? `Visitors can use ${name}` : `Visitors cannot use ${name} any more`,
              }}
              act={(widget) => (
                <Button small aria-label={`Embed ${widget.name}`} onClick={() => setEmbedded(widget)}>
                  Embed
                </Button>
              )}
              menu={(widget) => [
                { label: 'Edit', icon: 'edit', onClick: () => setEdited(widget) },
                { label: 'New key', icon: 'refresh', onClick: () => rotate(widget) },
                { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(widget) },
              ]}
            />
          </div>
        )}
      </Loaded>
      {edited && (
        <WidgetDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          widget={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onMade={setEmbedded}
        />
      )}
      {embedded && <EmbedDialog widget={embedded} onClose={() => setEmbedded(null)} />}
    </>
  )
}

const COLUMNS: Column<Widget>[] = [
  {
    heading: 'Widget',
    cell: ({ name, workflowId }) => (
      <>
        <span className="name">{name}</span>
        <div className="quiet">
          {workflowId ? <WorkflowName id={workflowId} /> : 'its workflow is deleted'}
        </div>
      </>
    ),
  },
  {
    heading: 'Pages',
    cell: ({ allowedOrigins }) =>
      allowedOrigins.length === 0 ? (
        <Pill tone="warn">None: nobody can use it</Pill>
      ) : (
        <span className="said">{allowedOrigins.join('\n')}</span>
      ),
  },
  {
    heading: 'Messages a day',
    cell: ({ limits }) =>
      `${limits.perVisitor.toLocaleString()} a visitor, ${limits.perDay.toLocaleString()} in all`,
  },
]
