import { useState } from 'react'
import { Link } from 'wouter'
import { deleteWidget, rotateWidgetKey, updateWidget, useWidgets, type Widget } from '../data/widgets.ts'
import { Button } from '../kit/button.tsx'
import { useConfirm } from '../kit/confirm.tsx'
import { PageHeader } from '../kit/header.tsx'
import { Menu } from '../kit/menu.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { OnOff } from '../kit/onoff.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Table } from '../kit/table.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
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

  const turn = ({ id, name }: Widget, enabled: boolean) =>
    updateWidget(id, { enabled }).then(
      () => notify(enabled ? `Visitors can use ${name}` : `Visitors cannot use ${name} any more`),
      notifyError,
    )
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
  const add = mayChange && (
    <Button look="primary" icon="plus" onClick={() => setEdited('new')}>
      New widget
    </Button>
  )

  return (
    <>
      <PageHeader title="Widgets">{add}</PageHeader>
      <Loaded query={found}>
        {(widgets) =>
          widgets.length === 0 ? (
            <Empty
              title="No widgets"
              text="A widget is a chat with an agent workflow that visitors of your pages can use without an account."
            />
          ) : (
            <Table
              label="Widgets"
              rows={widgets}
              keyOf={({ id }) => id}
              columns={[
                {
                  heading: 'Widget',
                  cell: ({ name, workflowId }) => (
                    <>
                      <span className="name">{name}</span>
                      <div className="quiet">
                        {workflowId ? (
                          <Link href={`/workflows/${workflowId}`}>workflow</Link>
                        ) : (
                          'its workflow is deleted'
                        )}
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
                  cell: ({ limits }) => `${limits.perVisitor} a visitor, ${limits.perDay} in all`,
                },
                {
                  heading: 'Enabled',
                  cell: (widget) => (
                    <OnOff
                      label={`Enable ${widget.name}`}
                      on={widget.enabled}
                      mayChange={mayChange}
                      onChange={(enabled) => void turn(widget, enabled)}
                    />
                  ),
                },
                {
                  heading: 'Act',
                  cell: (widget) => (
                    <div className="row">
                      <Button small aria-label={`Embed ${widget.name}`} onClick={() => setEmbedded(widget)}>
                        Embed
                      </Button>
                      {mayChange && (
                        <Menu
                          trigger={
                            <Button small look="plain" icon="more" aria-label={`More about ${widget.name}`} />
                          }
                          items={[
                            { label: 'Edit', icon: 'edit', onClick: () => setEdited(widget) },
                            { label: 'New key', icon: 'refresh', onClick: () => rotate(widget) },
                            { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(widget) },
                          ]}
                        />
                      )}
                    </div>
                  ),
                },
              ]}
            />
          )
        }
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
