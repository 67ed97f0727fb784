import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { notifyError } from '../../kit/notices.tsx'
import { Dialog } from '../../kit/overlays/dialog.tsx'
import { useWork } from '../../kit/work.ts'
import { exportWorkflow } from './data.ts'

type Document = Awaited<ReturnType<typeof exportWorkflow>>

/** The name of a file for a workflow of this name. */
export function nameFile(name: string): string {
  return `${name.replace(/[\\/:*?"<>|\p{Cc}]/gu, '_').slice(0, 100)}.json`
}

/** Gives the browser a file to keep. */
export function saveFile(name: string, content: unknown): void {
  const file = new Blob([JSON.stringify(content, null, 2)], { type: 'application/json' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** Saves a workflow as a document, and says what the document leaves out. */
export function ExportButton({ workflow: { id, name } }: { workflow: { id: string; name: string } }) {
  const [document, setDocument] = useState<Document | null>(null)
  const { busy, run } = useWork({ onError: notifyError })
  const take = async () => {
    const taken = await exportWorkflow(id)
    saveFile(nameFile(name), taken)
    setDocument(taken)
  }
  const named = document?.nodes.filter((node) => hasCredential(node)) ?? []
  return (
    <>
      <Button icon="download" busy={busy} onClick={() => run(take)}>
        Export
      </Button>
      <Dialog open={document !== null} onClose={() => setDocument(null)} title={`Exported: ${name}`}>
        <div className="stack">
          <p>
            The file <code>{nameFile(name)}</code> holds the newest graph and the settings. It leaves out:
          </p>
          <ul className="left-out">
            <li>the executions, the versions before, and whether the workflow is active</li>
            {named.length > 0 && (
              <li>
                the credentials of {named.map((node) => node.name ?? node.id).join(', ')}: only their ids are
                named
              </li>
            )}
            {(document?.secrets ?? []).map((path) => (
              <li key={path}>
                the secret at <code>{path}</code>
              </li>
            ))}
            {document?.secrets.length === 0 && <li>no secret: none is written into the graph</li>}
          </ul>
          <div className="actions">
            <Button look="primary" onClick={() => setDocument(null)}>
              Close
            </Button>
          </div>
        </div>
      </Dialog>
    </>
  )
}

function hasCredential(node: unknown): boolean {
  return JSON.stringify(node).includes('"credentialId":"')
}
