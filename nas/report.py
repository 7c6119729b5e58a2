"""Write report.html: a run, a fit, a calibration, or several runs side by side, as one offline page to look at and send."""

from nas.commands.requests import ReportRequest
from nas.terminal.parser import command


def report(request: ReportRequest) -> None:
    """Write an offline page of a run, a fit, a calibration, or of several runs; nothing in the folders is executed."""
    from nas.commands.answer_folders import work_of
    from nas.commands.report import made_from_report

    folder, *others = request.runs
    if not others and (theirs := work_of("report", folder)) is not None:
        theirs(request)
        return
    if made_from_report(request.runs):
        from nas.commands.report_from_json import report as work
    else:
        from nas.commands.report import report as work
    work(request)


main = command(report)
if __name__ == "__main__":
    main()
