import { tellError } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { useWork } from '../kit/work.ts'
import type { WorkflowItem } from './data.ts'
import { changeWorkflow, deleteWorkflow } from './data.ts'
import { exportWorkflow } from './transfer/data.ts'
import { nameFile, saveFile } from './transfer/exporting.tsx'

type BulkProps = { chosen: readonly WorkflowItem[]; onDone: () => void }

/** What can be done with several workflows at once, one after the other; what is refused is told by its name. */
export function WorkflowBulk({ chosen, onDone }: BulkProps) {
  const confirm = useConfirm()
  const { busy, run } = useWork()
  const each = (
    workflows: readonly WorkflowItem[],
    done: string,
    work: (workflow: WorkflowItem) => Promise<unknown>,
  ) =>
    run(async () => {
      let good = 0
      for (const workflow of workflows) {
        try {
          await work(workflow)
          good += 1
        } catch (error) {
          notify(`${workflow.name}: ${tellError(error)}`, 'bad')
        }
      }
      if (good > 0) notify(`${tellCount(good)} ${done}`)
      onDone()
    })
  const others = (active: boolean) => chosen.filter((one) => one.active !== active)
  const activate = (active: boolean) =>
    confirm({
      title: `${active ? 'Activate' : 'Deactivate'} ${tellCount(others(active).length)}?`,
      text: (
        <>
          {active
            ? 'Webhooks, schedules and chats start executions of '
            : 'Nothing but people and the API starts '}
          <strong>{tellNames(others(active))}</strong> {active ? 'from now on.' : 'any more.'}
        </>
      ),
      label: active ? 'Activate' : 'Deactivate',
      work: () =>
        each(others(active), active ? 'activated' : 'deactivated', ({ id }) =>
          changeWorkflow(id, { active }),
        ),
    })
  const remove = () =>
    confirm({
      title: `Delete ${tellCount(chosen.length)}?`,
      text: (
        <>
          This deletes <strong>{tellNames(chosen)}</strong> and the history of all their executions. It ends
          the running ones. It cannot be undone.
        </>
      ),
      label: 'Delete',
      danger: true,
      work: () => each(chosen, 'deleted', ({ id }) => deleteWorkflow(id)),
    })
  const take = () =>
    each(chosen, 'exported', async ({ id, name }) => saveFile(nameFile(name), await exportWorkflow(id)))
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form
    <div className="row bulk" role="group" aria-label={`With ${tellCount(chosen.length)}`}>
      <span className="quiet">{chosen.length} chosen</span>
      {others(true).length > 0 && (
        <Button small busy={busy} onClick={() => activate(true)}>
          Activate
        </Button>
      )}
      {others(false).length > 0 && (
        <Button small disabled={busy} onClick={() => activate(false)}>
          Deactivate
        </Button>
      )}
      <Button small disabled={busy} icon="download" onClick={take}>
        Export
      </Button>
      <Button small disabled={busy} look="danger" icon="trash" onClick={remove}>
        Delete
      </Button>
    </div>
  )
}

const NAMED = 20

function tellNames(workflows: readonly WorkflowItem[]): string {
  const names = workflows.slice(0, NAMED).map(({ name }) => name)
  const more = workflows.length - names.length
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function tellCount(count: number): string {
  return count === 1 ? '1 workflow' : `${count} workflows`
}
