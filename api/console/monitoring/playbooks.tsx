import { useState } from 'react'
import { deletePlaybook, type Playbook, updatePlaybook, usePlaybooks } from '../data/playbooks.ts'
import { Button } from '../kit/button.tsx'
import { useConfirm } from '../kit/confirm.tsx'
import { Menu } from '../kit/menu.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { OnOff } from '../kit/onoff.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { Table } from '../kit/table.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { PlaybookDialog } from './playbook.tsx'
import { PlaybookRuns } from './playbookruns.tsx'

/** What the team does by itself about its alerts. */
export function PlaybooksView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const confirm = useConfirm()
  const found = usePlaybooks(teamId)
  const [edited, setEdited] = useState<Playbook | 'new' | null>(null)
  const [shown, setShown] = useState<Playbook | null>(null)

  const turn = (playbook: Playbook, enabled: boolean) =>
    updatePlaybook(playbook, { enabled }).then(
      () => notify(enabled ? `${playbook.name} runs from now on` : `${playbook.name} does not run any more`),
      notifyError,
    )
  const remove = (playbook: Playbook) =>
    confirm({
      title: `Delete ${playbook.name}?`,
      text: 'Its runs are deleted with it, and those under way stop. This cannot be undone.',
      label: 'Delete the playbook',
      danger: true,
      work: () => deletePlaybook(playbook),
    })
  const add = mayChange && (
    <Button look="primary" icon="plus" onClick={() => setEdited('new')}>
      New playbook
    </Button>
  )

  return (
    <div className="stack">
      <Loaded query={found} rows={3}>
        {(playbooks) =>
          playbooks.length === 0 ? (
            <Empty
              title="No playbooks"
              text="A playbook tells a channel, starts a workflow or deactivates one when there is an alert."
            >
              {add}
            </Empty>
          ) : (
            <>
              <div className="row">{add}</div>
              <Table
                label="Playbooks"
                rows={playbooks}
                keyOf={({ id }) => id}
                columns={[
                  {
                    heading: 'Playbook',
                    cell: (playbook) => (
                      <>
                        <span className="name">{playbook.name}</span>
                        <div className="quiet said">{tellConditions(playbook)}</div>
                      </>
                    ),
                  },
                  {
                    heading: 'Steps',
                    cell: ({ steps }) => steps.map(({ type }) => nameConstant(type)).join(', then '),
                  },
                  {
                    heading: 'Enabled',
                    cell: (playbook) => (
                      <OnOff
                        label={`Run ${playbook.name}`}
                        on={playbook.enabled}
                        mayChange={mayChange}
                        onChange={(enabled) => void turn(playbook, enabled)}
                      />
                    ),
                  },
                  {
                    heading: 'Act',
                    cell: (playbook) => (
                      <div className="row">
                        <Button
                          small
                          aria-label={`Runs of ${playbook.name}`}
                          onClick={() => setShown(playbook)}
                        >
                          Runs
                        </Button>
                        {mayChange && (
                          <Menu
                            trigger={
                              <Button
                                small
                                look="plain"
                                icon="more"
                                aria-label={`More about ${playbook.name}`}
                              />
                            }
                            items={[
                              { label: 'Edit', icon: 'edit', onClick: () => setEdited(playbook) },
                              {
                                label: 'Delete',
                                icon: 'trash',
                                danger: true,
                                onClick: () => remove(playbook),
                              },
                            ]}
                          />
                        )}
                      </div>
                    ),
                  },
                ]}
              />
            </>
          )
        }
      </Loaded>
      {edited && (
        <PlaybookDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          playbook={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
        />
      )}
      {shown && <PlaybookRuns playbook={shown} onClose={() => setShown(null)} />}
    </div>
  )
}

function tellConditions({ on }: Playbook): string {
  const alerts = on.alertTypes.map(nameConstant).join(', ')
  return [
    alerts && `${alerts}, ${on.minSeverity.toLowerCase()} or worse`,
    on.evaluations && 'evaluations that score too low',
    on.workflowIds && `of ${on.workflowIds.length} workflows`,
  ]
    .filter(Boolean)
    .join('; ')
}
