import { addressOf } from '../../data/client.ts'
import { CopyButton } from '../../kit/controls/copy.tsx'
import { useForm } from '../scope.ts'

/** Where the page of a form is, with a link that opens it. */
export function FormAddress() {
  const { node, workflowId } = useForm()
  const { path } = node.config
  if (!workflowId)
    return <p className="quiet">Save the workflow: then the address of its page stands here.</p>
  if (typeof path !== 'string' || path === '')
    return <p className="quiet">Give it a path: then the address of its page stands here.</p>
  const url = addressOf(`/forms/${workflowId}/${path}`)
  return (
    <section className="address" aria-label="Address">
      <div className="address-line">
        <a className="url" href={url} target="_blank" rel="noopener noreferrer">
          {url}
        </a>
        <CopyButton text={url} label="Copy the address" />
      </div>
      <p className="help quiet">
        The page is there while the workflow is active, by the version that is published. To try it before,
        choose Listen: then the page for tests is open.
      </p>
    </section>
  )
}
