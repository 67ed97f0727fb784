import { HEIGHT } from './lines.ts'

/** The box of a node in a drawing; that of a loop has the loop's body inside. */
export function NodeBox({ width, height, isLoop }: { width: number; height: number; isLoop: boolean }) {
  return (
    <>
      <rect className="box" width={width} height={height} rx={8} />
      <rect className="edge-mark" x={0} y={9} width={3} height={HEIGHT - 18} rx={1.5} />
      {isLoop && (
        <rect
          className="inside"
          x={6}
          y={HEIGHT - 2}
          width={width - 12}
          height={Math.max(0, height - HEIGHT - 4)}
          rx={5}
        />
      )}
    </>
  )
}
