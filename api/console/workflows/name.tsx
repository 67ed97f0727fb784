import { Link } from 'wouter'
import { useWorkflow } from './data.ts'

/** A workflow by its name, with its page behind it; of one that is gone, the end of its id. */
export function WorkflowName({ id }: { id: string }) {
  const { data, error } = useWorkflow(id)
  if (error) return <span className="quiet">a workflow that is not there ({id.slice(-12)})</span>
  return (
    <Link className="name" href={`/workflows/${id}`}>
      {data?.name ?? id.slice(-12)}
    </Link>
  )
}
