import { Component, type ReactNode } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { Refused } from '../kit/states.tsx'

/** A page that fails does not take the frame with it. React knows such a boundary only as a class. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    if (this.state.error === null) return this.props.children
    return (
      <>
        <h1 tabIndex={-1}>This page could not be shown</h1>
        <p className="lead">If the service was updated meanwhile, loading the console again helps.</p>
        <Refused error={this.state.error} />
        <Button look="primary" icon="refresh" onClick={() => location.reload()}>
          Load again
        </Button>
      </>
    )
  }
}
